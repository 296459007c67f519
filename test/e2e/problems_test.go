package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/test/faults"
)

// throughProxy returns a kubeconfig for the cluster's administrator that leads through a proxy with a handler.
func (c *cluster) throughProxy(t *testing.T, does func(next http.Handler) http.HandlerFunc) string {
	t.Helper()
	g := NewWithT(t)
	forward, err := faults.Forward(c.config)
	g.Expect(err).NotTo(HaveOccurred())
	proxy := httptest.NewServer(does(forward))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return write(t, kubeconfig(proxy.URL))
}

// withoutPreconditions returns a kubeconfig of a proxy that drops the preconditions of deletes.
func (c *cluster) withoutPreconditions(t *testing.T) string {
	t.Helper()
	return c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodDelete {
				replaceBody(t, request, `"preconditions":`, `"ignored":`)
			}
			next.ServeHTTP(writer, request)
		}
	})
}

func TestRun_WatchesCut(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	var cut atomic.Int32
	kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if request.URL.Query().Get("watch") != "" {
				ctx, cancel := context.WithTimeout(request.Context(), 300*time.Millisecond)
				defer cancel()
				request = request.WithContext(ctx)
				defer cut.Add(1)
			}
			next.ServeHTTP(writer, request)
		}
	})

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "3",
		"--label-filter", "/^cascade\\.foreground/").wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Errored)).To(BeEmpty())
	g.Expect(len(reasons(cluster, v1alpha1.Passed))).To(BeNumerically(">=", 10))
	g.Expect(cut.Load()).To(BeNumerically(">=", 10), "watches that were cut")
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

func TestRun_ConnectionErrors(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	problems := []http.HandlerFunc{
		func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("Retry-After", "1")
			http.Error(writer, "too many requests", http.StatusTooManyRequests)
		},
		func(writer http.ResponseWriter, _ *http.Request) {
			http.Error(writer, "the load balancer has no server", http.StatusServiceUnavailable)
		},
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("Content-Type", "application/json")
			writer.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError","message":"etcdserver: leader changed"}`)
		},
	}
	var asked atomic.Int32
	kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if strings.HasSuffix(request.URL.Path, "/eviction") {
				problems[3](writer, request) // each time
				return
			}
			if strings.Contains(request.URL.Path, "/pods") {
				if n := int(asked.Add(1)); n%7 == 0 {
					problems[n/7%len(problems)](writer, request)
					return
				}
			}
			next.ServeHTTP(writer, request)
		}
	})

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "3", "--suite", "graceful",
		"--label-filter", `features: isEmpty && /\.(default|spec|options|immediate|repeat|watch|delete)-/ || graceful.eviction-options`).wait()

	g.Expect(ran.code).To(Equal(1), "what the server does each time is no problem on the way")
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Failed)).To(HaveKey("graceful.eviction-options"))
	for id := range reasons(cluster, v1alpha1.Failed) {
		failed := resultOf(cluster, id)
		g.Expect(failed.Failure.Message).To(MatchRegexp(`^POST /\S+/eviction must be decided, but the server returned 500 each time, .*etcdserver: leader changed`))
		g.Expect(failed.Tries).To(BeEmpty(), id)
	}
	g.Expect(reasons(cluster, v1alpha1.Deviated)).To(BeEmpty())
	g.Expect(reasons(cluster, v1alpha1.Passed)).NotTo(BeEmpty())
	for id, reason := range reasons(cluster, v1alpha1.Errored) {
		g.Expect(reason).To(ContainSubstring("could not be tested"), id)
		g.Expect(reason).NotTo(HavePrefix("GET"), "reads are repeated: %s", id)
		g.Expect(resultOf(cluster, id).Tries).To(HaveLen(4), "it was retried: %s", id)
	}
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

func TestRun_SlowBehavior(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const slow = "cascade.background.held-dependent"

	ran := startRun(t, "--kubeconfig", c.admin(t, "impatient"), "--label-filter", slow+" || finalizers.held", "--timeout", "30s", long).wait()

	g.Expect(ran.code).To(Equal(1))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey("finalizers.held"))
	failed := resultOf(cluster, slow)
	g.Expect(failed.Outcome).To(Equal(v1alpha1.Failed))
	g.Expect(failed.Failure.Message).To(ContainSubstring("the behavior took longer than 30s (--timeout)"))
	g.Expect(failed.Failure.Location).To(HavePrefix("suites/cascade/background.go:"))
	g.Expect(failed.Failure.Explanation).To(ContainElement(ContainSubstring("held by this test's own finalizer")))
	g.Expect(failed.Timeline.Requests).NotTo(BeEmpty())
	g.Expect(failed.Timeline.Events).NotTo(BeEmpty())
	g.Expect(ran.out).To(And(ContainSubstring(failed.Failure.Message), ContainSubstring(failed.Statement), ContainSubstring(failed.Failure.Location)))
	g.Expect(ran.inJUnit(t)).To(HaveKeyWithValue(slow, "failure"))
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

// renamed returns a kubeconfig with its only context renamed.
func renamed(t *testing.T, kubeconfig, name string) string {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.LoadFromFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	config.Contexts[name] = config.Contexts[config.CurrentContext]
	delete(config.Contexts, config.CurrentContext)
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return write(t, string(content))
}

// It is not parallel, because the first behavior must pass within the 10 s after which a server counts as unreachable.
func TestRun_SilentCluster(t *testing.T) {
	g := NewWithT(t)
	one, two := shared.in(t), bare.in(t)

	ran := startRun(t, "--procs", "2", "--label-filter", "finalizers.held || cascade.foreground.circle",
		"--kubeconfig", renamed(t, one.admin(t, "everywhere"), "one"), "--kubeconfig", renamed(t, two.admin(t, "everywhere"), "two"),
		"--kubeconfig", write(t, kubeconfig(silentServer(t)))).wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(strings.Index(ran.out, "[one] passed")).To(And(
		BeNumerically(">", 0), BeNumerically("<", strings.Index(ran.out, "[there] untested"))), "nor from being tested at once")
	whole := ran.report(t)
	g.Expect(whole.Clusters).To(HaveLen(3))
	for i, want := range []struct {
		name         string
		held, circle v1alpha1.Outcome
	}{
		{"one", v1alpha1.Passed, v1alpha1.Passed},
		{"two", v1alpha1.Passed, v1alpha1.Skipped},
		{"there", v1alpha1.Errored, v1alpha1.Errored},
	} {
		cluster := whole.Clusters[i]
		g.Expect(cluster.Name).To(Equal(want.name))
		g.Expect(resultOf(cluster, "finalizers.held").Outcome).To(Equal(want.held), want.name)
		g.Expect(resultOf(cluster, "cascade.foreground.circle").Outcome).To(Equal(want.circle), want.name)
		g.Expect(cluster.Results).To(HaveLen(len(catalog(t))))
	}
	g.Expect(one.mentioning(t, whole.RunID)).To(BeEmpty())
	g.Expect(two.mentioning(t, whole.RunID)).To(BeEmpty())
}
