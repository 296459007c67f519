package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// offered are the features that the administrator of an embedded cluster without a node has.
var offered = []v1alpha1.Feature{
	v1alpha1.GC, v1alpha1.KCM, v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode,
	v1alpha1.Hook, v1alpha1.PodNetwork, v1alpha1.Kubectl,
}

// One run of everything checks several properties, because it takes long.
func TestAWholeRun(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := quiet.in(t)
	const user = "marked" // as the policies in marked.yaml name it
	kubeconfig := c.admin(t, user)
	c.apply(t, filepath.Join("testdata", "marked.yaml"))
	labels, definitions := c.labelsOfNamespaces(t), c.watchAdmission(t)
	before := c.settled(t)

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "4", "--kubectl", kubectl(t), "--label", "team=x", "--annotation", "note=a, b",
		"--namespace-label", "marked=yes").wait()

	g.Expect(ran.code).To(Equal(0))
	g.Expect(differences(before, c.everything(t))).To(BeEmpty(), "the run leaves the cluster as it was")
	tested(t, ran.cluster(t), offered)
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
	t.Run("everything that it creates carries the labels and annotations of its user", func(t *testing.T) {
		c.isMarked(t, user, run, definitions())
	})
}

// tested checks that everything that a cluster supports was tested, and that the rest has a reason. Only these suites were selected;
// without any, all.
func tested(t *testing.T, cluster v1alpha1.Cluster, offered []v1alpha1.Feature, suites ...string) {
	t.Helper()
	g := NewWithT(t)
	for _, result := range cluster.Results {
		suite, _, _ := strings.Cut(result.ID, ".")
		testable := !slices.ContainsFunc(result.Features, func(need v1alpha1.Feature) bool { return !slices.Contains(offered, need) })
		switch {
		case result.Slow, len(suites) > 0 && !slices.Contains(suites, suite):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Filtered), result.ID)
		case testable && result.Outcome != v1alpha1.Skipped: // the behavior itself reports further requirements
			g.Expect(result.Outcome).To(Equal(v1alpha1.Passed), result.ID)
		default:
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
			g.Expect(result.Reason).NotTo(BeEmpty(), result.ID)
		}
	}
	g.Expect(len(reasons(cluster, v1alpha1.Passed))).To(BeNumerically(">=", 100))
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
		object.Namespace == "" && strings.Contains(object.Name, run) ||
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
			if namespace, is := event.Object.(*corev1.Namespace); is {
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

func TestAnAPIServerAloneIsTestedByWhatItDecides(t *testing.T) {
	isTestedAlone(t, "alone", "cascade", "finalizers", "options")
}

func TestAnAPIServerAloneIsTestedByAllSuites(t *testing.T) {
	clustertest.Long(t)
	isTestedAlone(t, "alone-by-all")
}

// isTestedAlone runs suites, or all, on an API server without controllers.
func isTestedAlone(t *testing.T, user string, suites ...string) {
	t.Helper()
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)

	arguments := []string{"--kubeconfig", c.admin(t, user), "--procs", "2"}
	for _, suite := range suites {
		arguments = append(arguments, "--suite", suite)
	}
	ran := startRun(t, arguments...).wait()

	g.Expect(ran.code).To(Equal(0))
	whole, cluster := ran.report(t), ran.cluster(t)
	for _, result := range cluster.Results {
		switch {
		case result.Slow, len(suites) > 0 && !slices.Contains(suites, result.Suite()):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Filtered), result.ID)
		case len(result.Features) == 0 && strings.Contains(result.Reason, "the feature gate"):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
		case len(result.Features) == 0:
			g.Expect(result.Outcome).To(Equal(v1alpha1.Passed), result.ID)
		case slices.Contains(result.Features, v1alpha1.GC):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
			g.Expect(result.Timeline).To(BeZero(), "what is missing is found out by a probe, not by timeouts: %s", result.ID)
			g.Expect(result.Reason).To(ContainSubstring("the garbage collector did not act"), result.ID)
		case slices.Contains(result.Features, v1alpha1.KCM):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
			g.Expect(result.Reason).To(ContainSubstring("the built-in controllers did not act"), result.ID)
		}
	}
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty(), "namespaces are gone, though nobody else finalizes them there")
}

func resultOf(cluster v1alpha1.Cluster, id string) v1alpha1.Result {
	at := slices.IndexFunc(cluster.Results, func(result v1alpha1.Result) bool { return result.ID == id })
	return cluster.Results[at]
}

func TestAClusterWhereEverythingIsSkippedIsNoPass(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)

	ran := startRun(t, "--kubeconfig", c.admin(t, "nothing-to-test"), "--suite", "cascade", "--label-filter", "features: containsAny gc").wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(ran.out).To(And(
		ContainSubstring("nothing tested"), ContainSubstring("no behavior ran"), ContainSubstring("the garbage collector did not act")))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Passed)).To(BeEmpty())
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}
