package e2e

import (
	"cmp"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// suitesReports is the report directory of TestSuites, which is skipped without it.
var suitesReports = os.Getenv("SUITES_REPORT_DIR")

// suitesNodes is the number of nodes of the cluster of TestSuites: 0, 1 or 2. Without it the cluster has one where the machine supports that.
var suitesNodes = os.Getenv("SUITES_NODES")

// whole is the cluster of TestSuites.
var whole = &cluster{}

// TestSuites is one run of all behaviors, whose audit log shows what a run writes and reads. Arguments of the test are flags of the run. It
// runs alone: what other tests start would make its pods wait for minutes on a slow machine, and behaviors fail.
func TestSuites(t *testing.T) {
	if suitesReports == "" {
		t.Skip("make test and make suites run it")
	}
	g := NewWithT(t)
	supported := slices.Clone(offered)
	unsupported := embedded.NodeSupported()
	nodes, err := strconv.Atoi(cmp.Or(suitesNodes, "1"))
	g.Expect(err).NotTo(HaveOccurred())
	if suitesNodes != "" && nodes > 0 && unsupported != nil {
		t.Skip(unsupported)
	}
	if nodes > 0 && unsupported == nil {
		supported = append(supported, v1alpha1.Node)
		if nodes > 1 {
			supported = append(supported, v1alpha1.TwoNodes)
		}
		whole.options = []embedded.Option{embedded.WithNodes(nodes, embedded.Images{
			Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage,
		})}
	}
	c := whole.in(t)
	const user = "marked" // as the policies in marked.yaml name it
	kubeconfig := c.admin(t, user)
	c.apply(t, filepath.Join("testdata", "marked.yaml"))
	labels, definitions := c.labelsOfNamespaces(t), c.watchAdmission(t)
	before := c.settled(t)

	ended := runVisibly(t, "--kubeconfig", kubeconfig, "--disruptive", "--kubectl", kubectl(t), "--label", "team=x", "--annotation", "note=a, b",
		"--namespace-label", "marked=yes")
	ran := ended()

	g.Expect(ran.code).To(Equal(0), func() string { return ran.failures(t) })
	g.Expect(differences(before, c.objects(t))).To(BeEmpty(), "the run leaves the cluster as it was")
	all := flag.NArg() == 0
	if all {
		cluster := ran.cluster(t)
		tested(t, cluster, supported)
		g.Expect(report.UnannouncedSkips(cluster)).To(BeEmpty())
		for _, feature := range cluster.Features {
			g.Expect(feature.Present).To(Equal(slices.Contains(supported, feature.Feature)), string(feature.Feature))
		}
		g.Expect(reasons(cluster, v1alpha1.Skipped)).NotTo(ContainElement(ContainSubstring("only possible on an embedded cluster")))
	}
	run := ran.report(t).RunID
	t.Run("writes nowhere else", func(t *testing.T) {
		g := NewWithT(t)
		made := c.namespacesMade(t, user)
		g.Expect(made).NotTo(BeEmpty())
		for _, namespace := range made {
			g.Expect(labels(namespace)).To(HaveKeyWithValue(session.RunLabel, run), "namespace %s", namespace)
		}
		var elsewhere, wide []string
		for _, request := range c.requests(t, user) {
			switch {
			case request.writes() && !isOwn(request, run, made):
				elsewhere = append(elsewhere, request.String())
			case (request.Verb == "list" || request.Verb == "watch") && !isNarrow(request, run, made):
				wide = append(wide, request.String())
			}
		}
		g.Expect(elsewhere).To(BeEmpty(), "writes elsewhere")
		g.Expect(wide).To(BeEmpty(), "looks at more than the run's own")
	})
	t.Run("leaves no Events", func(t *testing.T) {
		g := NewWithT(t)
		events, err := c.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(events.Items).NotTo(ContainElement(HaveField("Name", ContainSubstring(run))))
	})
	t.Run("everything that it creates carries the labels and annotations of its user", func(t *testing.T) {
		made := c.isMarked(t, run, definitions())
		if all {
			NewWithT(t).Expect(made).To(BeNumerically(">", 0), "policies and webhooks, which policies do not see")
			c.marksEveryCreator(t, user)
		}
	})
}

// runVisibly starts bin/runner as its user would, in the root of the repository, with the arguments after those of the test. The function
// that it returns waits for the end.
func runVisibly(t *testing.T, arguments ...string) (ended func() outcome) {
	t.Helper()
	arguments = slices.Concat(arguments, []string{"--report-dir", suitesReports}, flag.Args())
	command := exec.CommandContext(t.Context(), filepath.Join(root(t), "bin", "runner"), arguments...)
	var out output
	command.Dir, command.Stdout, command.Stderr = root(t), io.MultiWriter(os.Stdout, &out), os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return func() outcome {
		_ = command.Wait() // its state contains how it ended
		return outcome{code: command.ProcessState.ExitCode(), out: out.String(), reports: suitesReports}
	}
}

// undeletable are the only objects of others that a run deletes, with dry-runs, which every server must refuse. The specs ensure that the
// body requests a dry-run, too (DryRunTwice), because this log does not contain bodies.
var undeletable = []string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "system-cluster-critical", "system-node-critical",
}

// hashed matches the names that the attach-detach controller requires of VolumeAttachments: a hash of volume, driver and node.
var hashed = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// isOwn reports whether a write was to an object of the run, or changed nothing.
func isOwn(request request, run string, namespaces []string) bool {
	object := request.ObjectRef
	if object == nil {
		return false
	}
	review := object.APIGroup == "authorization.k8s.io" || object.APIGroup == "authentication.k8s.io"
	return slices.Contains(namespaces, object.Namespace) ||
		strings.Contains(object.Namespace, run) || // one that does not exist
		(object.Namespace == "" || object.Resource == "events") && strings.Contains(object.Name, run) ||
		object.Namespace == "" && strings.HasSuffix(object.Name, ".1."+framework.Domain) || // only this run has the first domain
		object.Namespace == "" && selects(request, run) ||
		object.Resource == "volumeattachments" && (object.Name == "" || hashed.MatchString(object.Name)) || // the run's are the only ones
		slices.Contains(undeletable, object.Name) && request.Verb == "delete" && request.query().Get("dryRun") == metav1.DryRunAll ||
		request.Verb == "create" && (review || request.query().Get("dryRun") == metav1.DryRunAll)
}

// isNarrow reports whether a read was restricted to objects of the run, because objects of others must not cost anything. Kinds without
// labels may be read by the page.
func isNarrow(request request, run string, namespaces []string) bool {
	aboutOne := request.of("events") && request.Verb == "list" && // without labels
		strings.HasPrefix(request.query().Get("fieldSelector"), "involvedObject.uid=")
	ownName := strings.HasPrefix(request.query().Get("fieldSelector"), "metadata.name=") && strings.Contains(request.query().Get("fieldSelector"), run)
	return request.ObjectRef != nil && slices.Contains(namespaces, request.ObjectRef.Namespace) ||
		selects(request, run) || aboutOne || ownName || request.query().Get("limit") != ""
}

func selects(request request, run string) bool {
	return strings.Contains(request.selector(), session.RunLabel+"="+run)
}

// labelsOfNamespaces records the labels of every namespace that is created from now on.
func (c *cluster) labelsOfNamespaces(t *testing.T) func(name string) map[string]string {
	t.Helper()
	watcher, err := c.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	var seen sync.Map
	go func() {
		for event := range watcher.ResultChan() {
			if namespace, ok := event.Object.(*corev1.Namespace); ok {
				seen.Store(namespace.Name, namespace.Labels)
			}
		}
	}()
	return func(name string) map[string]string {
		labels, _ := seen.Load(name)
		known, _ := labels.(map[string]string)
		return known
	}
}
