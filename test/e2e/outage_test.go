package e2e

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// failing is a cluster whose components one test stops and kills.
var failing = &cluster{}

// outages is how many runs an outage of each kind ends, at a random moment. OUTAGES sets another number, and OUTAGES_SEED other moments.
const outages, outagesSeed = 1, 1

func TestRun_Outage(all *testing.T) {
	all.Parallel()
	c := failing.in(all)
	moments := rand.New(rand.NewPCG(uint64(number(all, "OUTAGES_SEED", outagesSeed)), 0))
	for _, test := range []struct {
		name, user, component string
		signal                syscall.Signal
		long                  bool
		says                  string
	}{
		{"storage hangs", "storage-hangs", "etcd", syscall.SIGSTOP, true, `^no response from storage \(etcd\) since \d\d:\d\d:\d\d`},
		{"the API server hangs", "server-hangs", "kube-apiserver", syscall.SIGSTOP, true, `^no response since \d\d:\d\d:\d\d`},
		{"the API server is killed", "server-killed", "kube-apiserver", syscall.SIGKILL, false,
			`^no response since \d\d:\d\d:\d\d \(dial tcp .*: connection refused\)`},
		{"storage is killed", "storage-killed", "etcd", syscall.SIGKILL, true, `^no response from storage \(etcd\) since \d\d:\d\d:\d\d`},
	} {
		all.Run(test.name, func(t *testing.T) {
			if test.long {
				clustertest.Long(t)
			}
			for range number(t, "OUTAGES", outages) {
				c.loses(t, test.user, test.component, test.signal, time.Duration(moments.Int64N(int64(10*time.Second))), test.says, all.Cleanup)
			}
		})
	}
}

// loses is a run that loses a component of its cluster some time after its first behavior has passed. What is started again lasts until
// the cleanup.
func (c *cluster) loses(
	t *testing.T, user, component string, signal syscall.Signal, after time.Duration, says string, cleanup func(func()),
) {
	t.Helper()
	g := NewWithT(t)
	ran := startRun(t, "--kubeconfig", c.admin(t, user), "--procs", "2", "--suite", "cascade", "--suite", "watch")
	g.Eventually(ran.out.String).WithTimeout(3 * waitTimeout).WithPolling(polling).Should(MatchRegexp(`(?m)^passed `))
	select {
	case <-ran.ended:
		t.Fatal("the run was faster")
	case <-time.After(after): // the moment is what is tried
	}

	pid := c.component(t, component)
	var startAgain func()
	lost := time.Now()
	if signal == syscall.SIGKILL {
		startAgain = kill(t, pid, cleanup)
	} else {
		g.Expect(syscall.Kill(pid, signal)).To(Succeed())
		startAgain = func() { g.Expect(syscall.Kill(pid, syscall.SIGCONT)).To(Succeed()) }
		t.Cleanup(startAgain)
	}
	ended := ran.wait()
	t.Logf("%s %s after %s: the run ended after %s", component, signal, after, time.Since(lost))
	startAgain()

	g.Expect(ended.code).To(Equal(3))
	cluster := ended.cluster(t)
	g.Expect(cluster.Problem).To(MatchRegexp(says))
	g.Expect(reasons(cluster, v1alpha1.Failed)).To(BeEmpty(), "no behavior fails for it")
	g.Expect(reasons(cluster, v1alpha1.Deviated)).To(BeEmpty(), "no behavior deviates for it")
	g.Expect(reasons(cluster, v1alpha1.Passed)).NotTo(BeEmpty())
	g.Expect(reasons(cluster, v1alpha1.Errored)).To(And(Not(BeEmpty()), HaveEach(cluster.Problem)), "one cause")
	run := ended.report(t).RunID
	g.Expect(cluster.LeftBehind).To(And(MatchRegexp(says), ContainSubstring("runner cleanup --run "+run)))

	g.Eventually(func() error {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	g.Expect(start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", c.admin(t, user+"-cleaner"), "--run", run).wait().code).To(Equal(0))
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}
