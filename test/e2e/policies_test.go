package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// governed is a cluster with policies that are typical of shared clusters.
var governed = &cluster{}

// apply creates the admission policies in a file, with texts replaced, and removes them when the test ends.
func (c *cluster) apply(t *testing.T, file string, replaced ...string) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := dynamic.NewForConfig(c.config)
	g.Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.NewReplacer(replaced...).Replace(string(content))), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		}
		resource := objects.Resource(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1",
			Resource: strings.Replace(strings.ToLower(object.GetKind())+"s", "policys", "policies", 1),
		})
		_, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = resource.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}) })
	}
}

// withWorkloads returns the behaviors that create pods, or workloads.
func withWorkloads() []string {
	var ids []string
	for id, use := range preflight.Fixtures() {
		if slices.ContainsFunc(slices.Concat(use.Creates, use.Controllers), func(kind string) bool {
			return kind == "v1/Pod" || kind == "v1/ReplicationController" || strings.HasPrefix(kind, "apps/") || strings.HasPrefix(kind, "batch/")
		}) {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestLabels_RequiredByPolicy(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := governed.in(t)
	c.apply(t, filepath.Join("testdata", "governed.yaml"))
	g.Eventually(func() error { // the API server enforces new policies after a delay
		_, err := c.CoreV1().Pods("default").Create(t.Context(), unlabeledPod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).WithTimeout(waitTimeout).Should(MatchError(ContainSubstring("needs the label team")))

	workloads := withWorkloads()
	ran := startRun(t, "--kubeconfig", c.admin(t, "governed"), "--kubectl", kubectl(t), "--label", "team=x",
		"--label-filter", plan.LabelFilter(workloads)).wait()

	passed := reasons(ran.cluster(t), v1alpha1.Passed)
	g.Expect(len(passed)).To(BeNumerically(">=", len(workloads)/2), "the others need a node")
	for _, result := range ran.cluster(t).Results {
		why := result.Reason
		if result.Failure != nil {
			why += result.Failure.Message
		}
		g.Expect(why).NotTo(ContainSubstring("needs the label team"), result.ID)
	}
	g.Expect(ran.code).To(Equal(0), "what the platform alone creates is skipped")
}

func unlabeledPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "unlabeled"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.invalid/none"}}},
	}
}

// violations returns the requests that violated an admission policy, from the audit log: "create pods by USER: NAME".
func (c *cluster) violations(t *testing.T, policy string) []string {
	t.Helper()
	log, err := os.Open(c.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	var found []string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		r := request{}
		_ = json.Unmarshal(lines.Bytes(), &r) // an incomplete line is not the run's
		if r.ObjectRef != nil && strings.Contains(r.Annotations["validation.policy.admission.k8s.io/validation_failure"], `"policy":"`+policy+`"`) {
			found = append(found, fmt.Sprintf("%s %s by %s: %s", r.Verb, r.ObjectRef.Resource, r.User.Username, r.ObjectRef.Name))
		}
	}
	return found
}

// watchAdmission records every admission policy and webhook configuration that is created from now on.
func (c *cluster) watchAdmission(t *testing.T) func() []*unstructured.Unstructured {
	t.Helper()
	watching, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []*unstructured.Unstructured
	for _, resource := range []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
	} {
		watcher, err := watching.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}).
			Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watcher.Stop)
		go func() {
			for event := range watcher.ResultChan() {
				if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Added {
					mu.Lock()
					seen = append(seen, object)
					mu.Unlock()
				}
			}
		}()
	}
	return func() []*unstructured.Unstructured {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// isMarked checks that every object that a run, or a controller for it, created has the label team=x and the annotation note="a, b".
// It returns how many of the definitions were the run's.
func (c *cluster) isMarked(t *testing.T, run string, definitions []*unstructured.Unstructured) (made int) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(c.violations(t, "marked")).To(BeEmpty(), "created without the label or the annotation")
	for _, object := range definitions {
		if strings.Contains(object.GetName(), run) {
			made++
			g.Expect(object.GetLabels()).To(HaveKeyWithValue("team", "x"), object.GetKind()+" "+object.GetName())
			g.Expect(object.GetAnnotations()).To(HaveKeyWithValue("note", "a, b"), object.GetKind()+" "+object.GetName())
		}
	}
	return made
}

// marksEveryCreator checks that the policies have seen what each kind of creator created in a run of all behaviors.
func (c *cluster) marksEveryCreator(t *testing.T, user string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(c.violations(t, "counted")).To(ContainElements(
		HavePrefix("create pods by system:serviceaccount:kube-system:replicaset-controller"),
		HavePrefix("create pods by system:serviceaccount:kube-system:statefulset-controller"),
		HavePrefix("create pods by system:serviceaccount:kube-system:daemon-set-controller"),
		HavePrefix("create pods by system:serviceaccount:kube-system:job-controller"),
		HavePrefix("create pods by system:serviceaccount:kube-system:replication-controller"),
		HavePrefix("create jobs by system:serviceaccount:kube-system:cronjob-controller"),
		HavePrefix("create replicasets by system:serviceaccount:kube-system:deployment-controller"),
		HavePrefix("create namespaces by "+user), HavePrefix("create customresourcedefinitions by "+user), HavePrefix("create nodes by "+user),
	), "the policy sees what is created")
}
