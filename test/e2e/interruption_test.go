package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	conductor "github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// quick are behaviors that need only an API server and are fast.
var quick = []string{"finalizers.held", "graceful.other-kinds", "graceful.immediate-grace-zero"}

// removesNamespace reports whether a request starts a teardown, which no quick behavior does.
func removesNamespace(request *http.Request) bool {
	parent, _ := strings.CutPrefix(request.URL.Path, "/api/v1/namespaces/")
	return request.Method == http.MethodDelete && parent != "" && !strings.Contains(parent, "/")
}

func TestInterrupt_KilledTeardown(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	tearingDown, released := make(chan struct{}), make(chan struct{})
	defer close(released)
	began := sync.OnceFunc(func() { close(tearingDown) })
	kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
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
	g.Expect(cluster.Results).To(HaveLen(len(catalog(t))))
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(And(HaveLen(len(quick)), HaveKey(quick[0])), "all that was tested")
	g.Expect(killed.inJUnit(t)).To(HaveKeyWithValue(quick[0], "passed"))
	g.Expect(cluster.LeftBehind).To(ContainSubstring("runner cleanup --run " + whole.RunID))

	cleaned := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, "after-the-kill"), "--run", whole.RunID).wait()
	g.Expect(cleaned.code).To(Equal(0))
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
}

// faulty is a cluster on which the runner panics for some requests.
type faulty struct {
	provider.Cluster
	config *rest.Config
}

func (f faulty) RESTConfig() *rest.Config { return f.config }

// faultyFor returns the cluster of a kubeconfig on which the runner, but not its workers, panics for some requests.
func faultyFor(t *testing.T, kubeconfig string, panics func(*http.Request) bool) clusters.Cluster {
	t.Helper()
	flags := &clusters.Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddTo(set, set)
	flags.Kubeconfigs = []string{kubeconfig}
	named, err := flags.Clusters()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(named[0].Provider.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return defective{next, panics} })
	named[0].Provider = faulty{named[0].Provider, config}
	return named[0]
}

// defective is a transport that panics for some requests.
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

// blind is an output that panics when a behavior has passed.
type blind struct{}

func (blind) Write(content []byte) (int, error) {
	if strings.Contains(string(content), string(v1alpha1.Passed)) {
		panic("a defect")
	}
	return len(content), nil
}

func TestRun_RunnerDefect(t *testing.T) {
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
		// during is the runner's activity, and left reports whether objects remain on the cluster.
		during, left string
		outcome      v1alpha1.Outcome
	}{
		{"while it sets up", "defect-setup", probing, false, "probe: ", "", v1alpha1.Errored},
		{"while it tests", "defect-judging", never, true, "show the progress: ", "", v1alpha1.Passed},
		{"while it tears down", "defect-teardown", removesNamespace, false, "tear down: ", "runner cleanup --run ", v1alpha1.Passed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			kubeconfig := c.admin(t, test.user)
			chosen := plan.Plan{}
			for _, id := range quick {
				chosen.Catalog = append(chosen.Catalog, plan.Behavior{Behavior: v1alpha1.Behavior{ID: id}})
			}
			options := conductor.NewOptions()
			options.FindClusters = func() ([]clusters.Cluster, error) {
				return []clusters.Cluster{faultyFor(t, kubeconfig, test.panics)}, nil
			}
			options.MakePlan = func(context.Context, plan.Selection) (plan.Plan, error) { return chosen, nil }
			options.Processes, options.Timeout, options.ReportDir = 2, time.Minute, t.TempDir()
			if test.blind {
				options.Out = blind{}
			}
			g.Expect(options.Complete(t.Context())).To(Succeed())
			g.Expect(options.Validate()).To(Succeed())

			whole, wrong := options.Run(t.Context())

			written, err := report.Read(filepath.Join(options.ReportDir, "report.json"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reasons(written.Clusters[0], test.outcome)).To(Equal(reasons(whole.Clusters[0], test.outcome)))
			for _, id := range quick {
				g.Expect(resultOf(whole.Clusters[0], id).Outcome).To(Equal(test.outcome), id)
			}
			g.Expect(wrong).To(MatchError(And(
				ContainSubstring(test.during+"panic in the runner: a defect"), Not(ContainSubstring("goroutine")))))
			g.Expect(crash.Stacks(wrong)).To(HaveLen(1))
			g.Expect(string(crash.Stacks(wrong)[0])).To(ContainSubstring("test/e2e/interruption_test.go"))
			g.Expect(whole.Clusters[0].LeftBehind).To(ContainSubstring(test.left))
			if test.left == "" {
				g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
				return
			}
			g.Expect(wrong).To(MatchError(conductor.ErrLeftBehind))
			cleaned := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", whole.RunID).wait()
			g.Expect(cleaned.code).To(Equal(0))
			g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
		})
	}
}

// ending is a cluster on which a test compares everything before and after runs with every kind of end.
var ending = &cluster{}

// interruptions is the number of runs that are interrupted at random moments. INTERRUPTIONS changes it, and INTERRUPTIONS_SEED the moments.
const interruptions, interruptionsSeed = 5, 1

// number returns the value of an environment variable, or a default.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set {
		return otherwise
	}
	said, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return said
}

func TestInventory(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := ending.in(t)
	before := c.settled(t)
	t.Run("at once", func(t *testing.T) {
		c.endsWith(t, "passes", 0, nil, "--label-filter", strings.Join(quick, " || ")+" || cascade.foreground.circle")
		c.endsWith(t, "fails", 1, nil, "--label-filter", "cascade.background.held-dependent || finalizers.held", "--timeout", "30s", long)
		moments := rand.New(rand.NewPCG(uint64(number(t, "INTERRUPTIONS_SEED", interruptionsSeed)), 0))
		for i := range number(t, "INTERRUPTIONS", interruptions) {
			moment := time.Duration(moments.Int64N(int64(8 * time.Second)))
			c.endsWith(t, fmt.Sprintf("interrupted-%d-after-%s", i, moment.Round(time.Millisecond)), 130, func(ran *running) {
				select {
				case <-ran.ended:
				case <-time.After(moment): // this delay is what the test varies
					_ = ran.command.Process.Signal(syscall.SIGINT)
				}
			}, "--suite", "cascade", "--suite", "finalizers")
		}
		t.Run("killed", func(t *testing.T) {
			t.Parallel()
			run := c.killedRun(t, "ending-killed", 2)
			cleaned := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, "ending-cleaner"), "--run", run).wait()
			NewWithT(t).Expect(cleaned.code).To(Equal(0))
		})
	})
	c.endsWith(t, "restarted", 4, func(*running) {
		c.awaitHeld(t, "ending-restarted", 2)
		c.restartAPIServer(t)
	}, "--procs", "2", "--label-filter", holding, "--settle", "15s")
	NewWithT(t).Eventually(func() []string { return differences(before, c.objects(t)) }).
		WithTimeout(waitTimeout).WithPolling(time.Second).Should(BeEmpty(), "however runs end, the cluster is as it was")
}

// endsWith starts a parallel run, calls a function, and expects the run to end with a code, or to pass if it was faster.
func (c *cluster) endsWith(t *testing.T, name string, code int, does func(*running), arguments ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if name != "restarted" {
			t.Parallel()
		}
		g := NewWithT(t)
		user := "ending-" + name
		ran := startRun(t, append([]string{"--kubeconfig", c.admin(t, user)}, arguments...)...)
		if does != nil {
			does(ran)
		}
		ended := ran.wait()
		if _, err := os.Stat(filepath.Join(ended.reports, "report.json")); code == 130 && err != nil { // it had not connected to the cluster
			g.Expect(c.requests(t, user)).To(BeEmpty())
			return
		}
		if code == 130 || code == 4 {
			g.Expect(ended.code).To(BeElementOf(0, code))
		} else {
			g.Expect(ended.code).To(Equal(code))
		}
		if code == 4 {
			g.Expect(reasons(ended.cluster(t), v1alpha1.Failed)).To(BeEmpty(), "what the server's absence brings about is no failure")
		}
		whole := ended.report(t)
		g.Expect(whole.Clusters[0].LeftBehind).To(BeEmpty())
		g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty())
	})
}

// restartAPIServer kills the cluster's API server and starts it again.
func (c *cluster) restartAPIServer(t *testing.T) {
	t.Helper()
	kill(t, c.component(t, "kube-apiserver"), t.Cleanup)()
	NewWithT(t).Eventually(func() error {
		_, err := c.Discovery().ServerVersion()
		return err
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
}

// kill kills a process that this one started and returns what starts it again as it was, until the cleanup.
func kill(t *testing.T, pid int, cleanup func(func())) (startAgain func()) {
	t.Helper()
	g := NewWithT(t)
	directory := fmt.Sprintf("/proc/%d/", pid)
	arguments, err := os.ReadFile(directory + "cmdline")
	g.Expect(err).NotTo(HaveOccurred())
	environment, err := os.ReadFile(directory + "environ")
	g.Expect(err).NotTo(HaveOccurred())
	program, err := os.Readlink(directory + "exe")
	g.Expect(err).NotTo(HaveOccurred())
	folder, err := os.Readlink(directory + "cwd")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	g.Eventually(lives).WithArguments(pid).WithTimeout(waitTimeout).WithPolling(polling).Should(BeFalse())
	return func() {
		split := func(text []byte) []string { return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00") }
		again := &exec.Cmd{Path: program, Args: split(arguments), Env: split(environment), Dir: folder}
		again.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		g.Expect(again.Start()).To(Succeed())
		cleanup(func() {
			_ = again.Process.Kill()
			_ = again.Wait()
		})
	}
}

// component returns the process id of a component of the cluster.
func (c *cluster) component(t *testing.T, name string) int {
	t.Helper()
	return component(t, name, filepath.Dir(c.local.Kubeconfig()))
}

// component returns the process id of a component of the cluster with a state directory.
func component(t *testing.T, name, directory string) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		content, err := os.ReadFile(file) // fails for those that have ended meanwhile
		program, flags, _ := strings.Cut(string(content), "\x00")
		if err == nil && filepath.Base(program) == name && strings.Contains(flags, directory+"/") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			return pid
		}
	}
	t.Fatalf("%s does not run", name)
	return 0
}
