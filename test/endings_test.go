package test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	conductor "github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

// quick are behaviours that need nothing but an API server and take no time.
var quick = []string{"finalizers.held", "graceful.only-pods", "graceful.zero-is-now"}

// removesNamespace says of a request that it begins to tear a run down: no behaviour of those that are quick does so.
func removesNamespace(request *http.Request) bool {
	parent, _ := strings.CutPrefix(request.URL.Path, "/api/v1/namespaces/")
	return request.Method == http.MethodDelete && parent != "" && !strings.Contains(parent, "/")
}

func TestARunThatIsKilledWhileItTearsDownHasReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	tearingDown, released := make(chan struct{}), make(chan struct{})
	defer close(released)
	began := sync.OnceFunc(func() { close(tearingDown) })
	kubeconfig := c.behind(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if removesNamespace(request) {
				began()
				<-released
				return
			}
			next.ServeHTTP(writer, request)
		}
	})

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "1", "--label-filter", strings.Join(quick, " || "))
	select {
	case <-tearingDown:
	case <-ran.ended:
		t.Fatal("the run ended without tearing down")
	}
	ran.signal(syscall.SIGKILL)
	killed := ran.wait()

	whole := killed.report(t)
	g.Expect(whole.Interrupted).To(BeFalse())
	cluster := whole.Clusters[0]
	g.Expect(cluster.Results).To(HaveLen(len(catalogue(t))))
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(And(HaveLen(len(quick)), HaveKey(quick[0])), "all that was judged")
	g.Expect(killed.inJUnit(t)).To(HaveKeyWithValue(quick[0], "passed"))
	g.Expect(cluster.LeftBehind).To(ContainSubstring("runner cleanup --run " + whole.RunID))

	cleaned := start(t, nothingSetUp(t), "cleanup", "--kubeconfig", c.admin(t, "after-the-kill"), "--run", whole.RunID).wait()
	g.Expect(cleaned.code).To(Equal(0))
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
}

// faulty is a cluster to which the runner's own way panics for some requests.
type faulty struct {
	support.E2EClusterProvider
	config *rest.Config
}

func (f faulty) KubernetesRestConfig() *rest.Config { return f.config }

// faultyFor is a cluster of a kubeconfig of which the runner cannot take some requests, as if its code had a defect. Workers
// can.
func faultyFor(t *testing.T, kubeconfig string, panics func(*http.Request) bool) clusters.Cluster {
	t.Helper()
	flags := &clusters.Flags{}
	flags.AddTo(pflag.NewFlagSet("", pflag.ContinueOnError))
	flags.Kubeconfigs = []string{kubeconfig}
	named, err := flags.Clusters()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(named[0].Provider.KubernetesRestConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return defective{next, panics} })
	named[0].Provider = faulty{named[0].Provider, config}
	return named[0]
}

// defective is a way to a server that panics for some requests.
type defective struct {
	http.RoundTripper
	panics func(*http.Request) bool
}

func (d defective) RoundTrip(request *http.Request) (*http.Response, error) {
	if d.panics(request) {
		panic("a defect")
	}
	return d.RoundTripper.RoundTrip(request)
}

// blind is a progress that panics when a behaviour ends.
type blind struct{ conductor.Progress }

func (blind) Ended(string, v1alpha1.Result) { panic("a defect") }

func TestARunOfARunnerWithADefectReports(t *testing.T) {
	t.Parallel()
	c := shared.in(t)
	never := func(*http.Request) bool { return false }
	probing := func(request *http.Request) bool {
		return request.URL.Path == "/api/v1/nodes" && request.URL.Query().Has("limit")
	}
	for _, test := range []struct {
		name, user string
		panics     func(*http.Request) bool
		blind      bool
		// during is what the runner was doing, and left says whether something stays on the cluster.
		during, left string
		outcome      v1alpha1.Outcome
	}{
		{"while it sets up", "defect-setup", probing, false, "probe: ", "", v1alpha1.Errored},
		{"while it judges", "defect-judging", never, true, "show the progress: ", "", v1alpha1.Passed},
		{"while it tears down", "defect-teardown", removesNamespace, false, "tear down: ", "runner cleanup --run ", v1alpha1.Passed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			kubeconfig := c.admin(t, test.user)
			chosen := plan.Plan{}
			for _, id := range quick {
				chosen.Catalogue = append(chosen.Catalogue, plan.Behavior{Behavior: v1alpha1.Behavior{ID: id}})
			}
			var judged []v1alpha1.Report
			shown := conductor.Progress(progress.New(io.Discard, 1, 1, progress.Quiet))
			if test.blind {
				shown = blind{shown}
			}

			whole, wrong := conductor.Run(t.Context(), conductor.Options{
				ID: environment.NewRunID(), Clusters: []clusters.Cluster{faultyFor(t, kubeconfig, test.panics)}, Plan: chosen,
				Pool:     workers.Pool{Executable: built.runner, Processes: 2, Timeout: time.Minute},
				Settings: session.DefaultSettings(), Progress: shown,
				Judged: func(report v1alpha1.Report) { judged = append(judged, report) },
			})

			g.Expect(judged).To(HaveLen(1))
			g.Expect(judged[0].Clusters[0].Results).To(Equal(whole.Clusters[0].Results), "all verdicts are known before anything is torn down")
			for _, id := range quick {
				g.Expect(resultOf(whole.Clusters[0], id).Outcome).To(Equal(test.outcome), id)
			}
			g.Expect(wrong).To(MatchError(And(
				ContainSubstring(test.during+"the runner itself has a defect (panic: a defect)"), Not(ContainSubstring("goroutine")))))
			g.Expect(crash.Stacks(wrong)).To(HaveLen(1))
			g.Expect(string(crash.Stacks(wrong)[0])).To(ContainSubstring("test/endings_test.go"))
			g.Expect(whole.Clusters[0].LeftBehind).To(ContainSubstring(test.left))
			if test.left == "" {
				g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
				return
			}
			g.Expect(wrong).To(MatchError(conductor.ErrLeftBehind))
			cleaned := start(t, nothingSetUp(t), "cleanup", "--kubeconfig", kubeconfig, "--run", whole.RunID).wait()
			g.Expect(cleaned.code).To(Equal(0))
			g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
		})
	}
}
