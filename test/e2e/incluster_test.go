package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

const (
	// jobNamespace and jobName are the namespace and the name of the Jobs of deploy/job.
	jobNamespace, jobName = "deletion-conformance", "deletion-conformance"
	// jobAccount is their ServiceAccount.
	jobAccount = "deletion-conformance-runner"
	// inside selects behaviors with webhooks, kubectl, pods on the node and the garbage collector.
	inside = "--suite=admission,finalizers,graceful,kubectl"
)

// jobCluster is an embedded cluster with a node that has the image of the runner.
type jobCluster struct {
	kubernetes.Interface
	kubeconfig, auditLog string
}

// imageArchive builds the image of the runner for this machine.
func imageArchive(t *testing.T) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	command := exec.CommandContext(t.Context(), "go", "run", "./internal/release/image", "-archive", archive, "-version", "test",
		"-platforms", "linux/"+runtime.GOARCH, "-kubernetes-version", strings.TrimPrefix(filepath.Base(built.kubernetes), "v"))
	command.Dir = root(t)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the image: %v\n%s", err, output)
	}
	return archive
}

// newJobCluster starts a cluster as a user would.
func newJobCluster(t *testing.T) jobCluster {
	t.Helper()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	if err := embedded.NodeSupported(); err != nil {
		t.Skip(err)
	}
	g := NewWithT(t)
	_, environment := embedding(t)
	kubeconfig, auditLog := filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "audit.log")
	up := start(t, environment, "cluster", "up", "--nodes", "1", "--image-archive", imageArchive(t), "--write-kubeconfig", kubeconfig,
		"--audit-log", auditLog)
	t.Cleanup(func() {
		_ = up.command.Process.Signal(syscall.SIGTERM)
		<-up.ended
	})
	g.Eventually(up.out.String).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainSubstring(kubeconfig))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return jobCluster{client, kubeconfig, auditLog}
}

// apply applies an overlay of deploy/job with the image of the test and the arguments of the runner.
func (c jobCluster) apply(t *testing.T, overlay string, arguments ...string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	base, err := filepath.Rel(dir, filepath.Join(root(t), "deploy", "job", "overlays", overlay))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [`+base+`]
images: [{name: registry.invalid/deletion-conformance/runner, newTag: test}]
patches:
  - target: {kind: Job}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args, value: ["`+strings.Join(arguments, `", "`)+`"]}
`), 0o600)).To(Succeed())
	applied := exec.CommandContext(t.Context(), kubectl(t), "--kubeconfig", c.kubeconfig, "apply", "-k", dir)
	output, err := applied.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
}

// collect collects the report of the Job.
func (c jobCluster) collect(t *testing.T) *running {
	t.Helper()
	return startRun(t, "collect", "--kubeconfig", c.kubeconfig, "--job", jobName)
}

// deleteJob deletes the Job with what it owns.
func (c jobCluster) deleteJob(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(c.BatchV1().Jobs(jobNamespace).Delete(t.Context(), jobName, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
	})).To(Succeed())
	g.Eventually(func() ([]string, error) { return c.names(t) }).WithTimeout(waitTimeout).WithPolling(time.Second).Should(BeEmpty(),
		"reports are deleted with their Job")
}

// names are the ConfigMaps with reports.
func (c jobCluster) names(t *testing.T) ([]string, error) {
	t.Helper()
	var names []string
	found, err := c.CoreV1().ConfigMaps(jobNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: session.Domain + "/job"})
	for _, configMap := range found.Items {
		names = append(names, configMap.Name)
	}
	return names, err
}

// leavesNothing checks that no object of a run is left.
func (c jobCluster) leavesNothing(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	ofRuns := metav1.ListOptions{LabelSelector: session.RunLabel}
	namespaces, err := c.CoreV1().Namespaces().List(t.Context(), ofRuns)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namespaces.Items).To(BeEmpty())
	validating, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), ofRuns)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validating.Items).To(BeEmpty())
	mutating, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), ofRuns)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mutating.Items).To(BeEmpty())
}

// outcomesOf are the outcomes of the behaviors on the only cluster of a report.
func outcomesOf(t *testing.T, o outcome) map[string]v1alpha1.Outcome {
	t.Helper()
	outcomes := map[string]v1alpha1.Outcome{}
	for _, result := range o.cluster(t).Results {
		outcomes[result.ID] = result.Outcome
	}
	return outcomes
}

// asServiceAccount returns a kubeconfig of the ServiceAccount of the Job.
func (c jobCluster) asServiceAccount(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	loaded, err := clientcmd.LoadFromFile(c.kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	token := exec.CommandContext(t.Context(), kubectl(t), "--kubeconfig", c.kubeconfig, "create", "token", jobAccount, "--namespace", jobNamespace, "--duration", "1h")
	output, err := token.Output()
	g.Expect(err).NotTo(HaveOccurred())
	for _, user := range loaded.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, strings.TrimSpace(string(output))
	}
	for _, cluster := range loaded.Clusters {
		cluster.Extensions = nil // no run in a Job reaches the socket of the components
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*loaded, path)).To(Succeed())
	return path
}

func TestJob(t *testing.T) {
	clustertest.Long(t)
	g := NewWithT(t)
	c := newJobCluster(t)
	c.apply(t, "cluster", "--in-cluster", "--store-report", inside)

	collected := c.collect(t).wait()

	g.Expect(collected.code).To(Equal(0))
	within := outcomesOf(t, collected)
	c.leavesNothing(t)
	again := c.collect(t).wait()
	g.Expect(again.code).To(Equal(0))
	g.Expect(outcomesOf(t, again)).To(Equal(within), "reports can be collected again")

	outside := startRun(t, "--kubeconfig", c.asServiceAccount(t), "--kubectl", kubectl(t), inside).wait()
	g.Expect(outside.code).To(Equal(0))
	g.Expect(within).To(Equal(outcomesOf(t, outside)))
	g.Expect(within).To(And(HaveKeyWithValue("admission.review-content", v1alpha1.Passed), HaveKeyWithValue("graceful.node.in-parallel", v1alpha1.Passed)))

	c.deleteJob(t)
	c.apply(t, "sharded", "--in-cluster", "--store-report", "--shard", "job/3", "--procs", "2", inside) // on one node
	sharded := c.collect(t)
	g.Eventually(sharded.out.String).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainSubstring("[index 1] passed"))
	c.kill(t, "1")
	merged := sharded.wait()
	g.Expect(merged.code).To(Equal(0))
	g.Expect(merged.out).To(And(ContainSubstring("[index 1] another attempt: "), ContainSubstring("[index 1] removing what an earlier attempt of this run left")))
	g.Expect(outcomesOf(t, merged)).To(Equal(within), "three shards, of which one was killed, equal one run")
	c.leavesNothing(t)
	c.usesItsRole(t)

	c.deleteJob(t)
	c.apply(t, "cluster", "--in-cluster", "--store-report", inside)
	drained := c.collect(t)
	g.Eventually(drained.out.String).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainSubstring("passed "))
	c.drain(t)
	resumed := drained.wait()
	g.Expect(resumed.code).To(Equal(0))
	g.Expect(resumed.out).To(ContainSubstring("another attempt: "))
	g.Expect(outcomesOf(t, resumed)).To(Equal(within), "a run whose node was drained equals one that was not disturbed")
	c.leavesNothing(t)
}

// usesItsRole checks that the pods used exactly the permissions that deploy/job grants besides the roles of deploy/rbac.
func (c jobCluster) usesItsRole(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(c.auditLog)
	g.Expect(err).NotTo(HaveOccurred())
	used := map[permission]bool{}
	for line := range bytes.Lines(content) {
		made := request{}
		if json.Unmarshal(line, &made) != nil || made.User.Username != "system:serviceaccount:"+jobNamespace+":"+jobAccount || made.ObjectRef == nil {
			continue
		}
		about := made.ObjectRef
		if about.Namespace == jobNamespace || about.Resource == "endpointslices" && slices.Contains([]string{"create", "delete"}, made.Verb) {
			used[permission{about.APIGroup, about.Resource, made.Verb, ""}] = true
		}
	}
	var granted []permission
	for _, file := range []string{"base/role-reports.yaml", "overlays/cluster/bindings.yaml"} {
		for _, rules := range rules(t, filepath.Join("..", "job", file)) {
			granted = append(granted, permissions(rules)...)
		}
	}
	g.Expect(slices.Collect(maps.Keys(used))).To(ConsistOf(granted))
}

// drain drains every node, and lets pods be scheduled again.
func (c jobCluster) drain(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, arguments := range [][]string{
		{"drain", "--selector", "kubernetes.io/os", "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", waitTimeout.String()},
		{"uncordon", "--selector", "kubernetes.io/os"},
	} {
		output, err := exec.CommandContext(t.Context(), kubectl(t), append(arguments, "--kubeconfig", c.kubeconfig)...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))
	}
}

// kill kills the pod of an index.
func (c jobCluster) kill(t *testing.T, index string) {
	t.Helper()
	g := NewWithT(t)
	pods, err := c.CoreV1().Pods(jobNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-completion-index=" + index})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Items).To(HaveLen(1))
	g.Expect(c.CoreV1().Pods(jobNamespace).Delete(t.Context(), pods.Items[0].Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})).To(Succeed())
}
