package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

// long makes behaviors that wait for the settling time last until they are interrupted.
const long = "--settle=10m"

// holding are behaviors that hold an object while they wait for the settling time.
const holding = "cascade.background.held-dependent || cascade.foreground.bottom-up || cascade.foreground.other-finalizer"

// workers returns the process ids of a runner's workers.
func (r *running) workers() []int {
	var workers []int
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.command.Process.Pid))
	for _, file := range children {
		content, _ := os.ReadFile(file) // empty when it has ended meanwhile
		for child := range strings.FieldsSeq(string(content)) {
			pid, err := strconv.Atoi(child)
			stat, _ := os.ReadFile("/proc/" + child + "/stat")
			// The state follows the program's name, which is in brackets.
			if _, state, _ := strings.Cut(string(stat), ") "); err == nil && state != "" && state[0] != 'Z' {
				workers = append(workers, pid)
			}
		}
	}
	return workers
}

// runningThreads are the threads of a runner that a SIGSTOP has not reached yet.
func (r *running) runningThreads() []string {
	var threads []string
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.command.Process.Pid))
	for _, file := range files {
		if status, err := os.ReadFile(file); err == nil && !bytes.Contains(status, []byte("\nState:\tT (stopped)\n")) {
			threads = append(threads, file)
		}
	}
	return threads
}

// lives reports whether a process exists.
func lives(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, user string
		// kubeconfig returns one for the user, and grants permissions.
		kubeconfig func(*cluster, *testing.T, string) string
	}{
		{"of an administrator", "interrupted-admin", (*cluster).admin},
		{"of a user of a self-service platform", "interrupted-tenant", (*cluster).tenant},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := shared.in(t)
			ran := startRun(t, "--kubeconfig", test.kubeconfig(c, t, test.user), "--procs", "2", "--label-filter", holding, long)
			run := c.awaitHeld(t, test.user, 2)
			ended := c.interrupt(t, ran)

			g := NewWithT(t)
			g.Expect(c.mentioning(t, run)).To(BeEmpty(), "nothing is left, not what was held either")
			whole, cluster := ended.report(t), ended.cluster(t)
			g.Expect(whole.Interrupted).To(BeTrue())
			g.Expect(whole.RunID).To(Equal(run))
			interruptions := reasons(cluster, v1alpha1.Interrupted)
			g.Expect(interruptions).To(HaveLen(3), "two that ran and one that did not get to")
			g.Expect(interruptions).To(ContainElements(
				"interrupted while it ran", "the run was interrupted before it started"))
			g.Expect(reasons(cluster, v1alpha1.Failed)).To(BeEmpty())
		})
	}
}

// interrupt interrupts a runner with two workers like Ctrl-C, and checks how it ends.
func (c *cluster) interrupt(t *testing.T, ran *running) outcome {
	t.Helper()
	g := NewWithT(t)
	workers := ran.workers()
	g.Expect(workers).To(HaveLen(2))
	interrupted := time.Now()
	ran.signal(syscall.SIGINT)
	ended := ran.wait()
	g.Expect(ended.code).To(Equal(130))
	g.Expect(time.Since(interrupted)).To(BeNumerically("<", 30*time.Second), "the namespace controller alone takes some 6 s")
	for _, worker := range workers {
		g.Expect(lives(worker)).To(BeFalse())
	}
	return ended
}

func TestInterrupt_Setup(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)
	const user = "hasty"
	const cleanupTimeout = 5 * time.Minute
	ran := startRun(t, "--kubeconfig", c.admin(t, user), "--cleanup-timeout", cleanupTimeout.String())
	g.Eventually(func() bool {
		for _, r := range c.requests(t, user) {
			if r.Verb == "delete" && r.of("configmaps") { // the probe is waiting for a collector, which does not exist
				return true
			}
		}
		return false
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(BeTrue())

	interrupted := time.Now()
	ran.signal(syscall.SIGTERM)
	ended := ran.wait()

	g.Expect(ended.code).To(Equal(130))
	g.Expect(time.Since(interrupted)).To(BeNumerically("<", cleanupTimeout/2),
		"a namespace controller, which is not there, is waited for 8 s, and longer where the cluster was slow")
	cluster := ended.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(BeEmpty())
	for _, feature := range cluster.Features {
		g.Expect(feature.Reason).NotTo(ContainSubstring("did not act within"), "what was not found out is not said")
	}
	g.Expect(c.mentioning(t, ended.report(t).RunID)).To(BeEmpty())
}

func TestCleanup_KilledRun(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	kubeconfig := c.admin(t, "cleaner")
	killed := c.killedRun(t, "killed", 2)
	other := c.killedRun(t, "killed-too", 1) // its only namespace has the lease; a young namespace without one counts as active
	c.renewedAt(t, killed, time.Now())       // as if it had been killed just now, because parallel tests may be slow
	c.renewedAt(t, other, time.Now())

	alive := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--dry-run").wait() // other tests have leftovers, too
	g.Expect(alive.code).To(Equal(0))
	for _, run := range []string{killed, other} {
		g.Expect(alive.out).To(MatchRegexp(`run %s on embedded is still active .*, skipping; use --run %s to remove it anyway`, run, run))
		g.Expect(c.mentioning(t, run)).NotTo(BeEmpty())
	}

	named := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", killed).wait()
	g.Expect(named.code).To(Equal(0))
	g.Expect(named.out).To(And(ContainSubstring("  Namespace %s-1\n", killed), HaveSuffix("removing run %s from embedded\n", killed)))
	g.Expect(c.mentioning(t, killed)).To(BeEmpty(), "nothing is left, not what was held either")
	g.Expect(c.mentioning(t, other)).NotTo(BeEmpty(), "the other run was not named")

	c.renewedAt(t, other, time.Now().Add(-time.Hour))
	expired := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--dry-run").wait()
	g.Expect(expired.out).To(ContainSubstring("run %s left on embedded:", other))
	others := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", other).wait()
	g.Expect(others.code).To(Equal(0))
	g.Expect(others.out).To(ContainSubstring("removing run %s from embedded", other))
	g.Expect(c.mentioning(t, other)).To(BeEmpty())

	unknown := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--run", killed).wait()
	g.Expect(unknown.code).To(Equal(2))
	g.Expect(unknown.errOut).To(ContainSubstring("no leftovers of run %q on embedded", killed))
}

// killedRun starts a run, kills its runner while objects are held, and returns the run's id.
func (c *cluster) killedRun(t *testing.T, user string, processes int) string {
	t.Helper()
	ran := startRun(t, "--kubeconfig", c.admin(t, user), "--procs", strconv.Itoa(processes), "--label-filter", holding, long)
	run := c.awaitHeld(t, user, processes)
	workers := ran.workers()
	ran.signal(syscall.SIGKILL)
	ran.wait()
	g := NewWithT(t)
	g.Expect(workers).To(HaveLen(processes))
	for _, worker := range workers {
		g.Eventually(lives).WithArguments(worker).WithTimeout(waitTimeout).Should(BeFalse(), "workers go with their runner")
	}
	return run
}

func TestInterrupt_Second(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	ran := startRun(t, "--kubeconfig", c.admin(t, "stopped"), "--procs", "1", "--label-filter", holding, long)
	c.awaitHeld(t, "stopped", 1)
	interrupted := time.Now()
	ran.signal(syscall.SIGINT)
	g.Eventually(ran.errOut.String).WithTimeout(waitTimeout).Should(ContainSubstring("press Ctrl-C again to stop immediately"))
	g.Eventually(func() bool { // signals together with the first one do not count
		_ = ran.command.Process.Signal(syscall.SIGINT)
		select {
		case <-ran.ended:
			return true
		default:
			return false
		}
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(BeTrue())
	ended := ran.wait()

	g.Expect(ended.code).To(Equal(130))
	g.Expect(ended.errOut).To(ContainSubstring("runner cleanup"))
	g.Expect(time.Since(interrupted)).To(BeNumerically("<", 5*time.Second), "the namespace controller alone takes some 6 s")
}

func TestInterrupt_SimultaneousSignals(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	ran := startRun(t, "--kubeconfig", c.admin(t, "signaled"), "--procs", "2", "--label-filter", holding, long)
	run := c.awaitHeld(t, "signaled", 2)

	ran.signal(syscall.SIGTERM)
	ran.signal(syscall.SIGINT)
	ended := ran.wait()

	g.Expect(ended.code).To(Equal(130))
	g.Expect(ended.errOut).NotTo(ContainSubstring("runner cleanup"))
	g.Expect(ended.report(t).Interrupted).To(BeTrue())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}

// renewedAt makes a run look active or inactive without waiting.
func (c *cluster) renewedAt(t *testing.T, run string, at time.Time) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, at.UTC().Format(metav1.RFC3339Micro))
	_, err := c.CoordinationV1().Leases(run+"-1").Patch(t.Context(), "deletion-conformance", types.MergePatchType, patch, metav1.PatchOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestRun_KilledWorker(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "worker-killed"
	ran := startRun(t, "--kubeconfig", c.admin(t, user), "--procs", "2", "--settle", "4s", // the others hold nothing
		"--label-filter", holding+" || cascade.foreground.circle || cascade.background.every-level || options.absent-object")
	run := c.awaitHeld(t, user, 2)
	workers := ran.workers()
	g.Expect(workers).To(HaveLen(2))
	g.Expect(syscall.Kill(workers[0], syscall.SIGKILL)).To(Succeed())

	ended := ran.wait()

	g.Expect(ended.code).To(Equal(4))
	cluster := ended.cluster(t)
	errored := reasons(cluster, v1alpha1.Errored)
	g.Expect(errored).To(HaveLen(1))
	for id, reason := range errored {
		g.Expect(holding).To(ContainSubstring(id), "what ran when it was killed")
		g.Expect(reason).To(And(ContainSubstring("worker died"), ContainSubstring("signal: killed")))
		g.Expect(ended.out).To(ContainSubstring(id))
		g.Expect(ended.inJUnit(t)).To(HaveKeyWithValue(id, "error"))
	}
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveLen(5), "all others")
	g.Expect(c.mentioning(t, run)).To(BeEmpty(), "nothing is left of the killed worker either")
}

func TestCleanup_SharedNamespace(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const namespace = "abandoned"
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := c.admin(t, namespace)
	ran := startRun(t, "--kubeconfig", kubeconfig, "--namespace", namespace, "--procs", "2", "--label-filter", holding, long)
	var held *corev1.ConfigMapList
	g.Eventually(func(g Gomega) {
		held, err = c.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: session.RunLabel})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(held.Items).NotTo(BeEmpty())
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	run, workers := held.Items[0].Labels[session.RunLabel], ran.workers()
	ran.signal(syscall.SIGKILL)
	ran.wait()
	for _, worker := range workers {
		g.Eventually(lives).WithArguments(worker).WithTimeout(waitTimeout).Should(BeFalse(), "workers go with their runner")
	}

	alive := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--namespace", namespace).wait()
	g.Expect(alive.code).To(Equal(0))
	g.Expect(alive.out).To(ContainSubstring("run " + run + " on embedded is still active"))
	second := startRun(t, "--kubeconfig", kubeconfig, "--namespace", namespace, "--label-filter", holding).wait()
	g.Expect(second.code).To(Equal(3))
	g.Expect(second.out).To(ContainSubstring("another run is active in namespace"))

	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{session.RunLabel: run}}}
	theirs, err = c.CoreV1().ConfigMaps(namespace).Create(t.Context(), theirs, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	removed := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", kubeconfig, "--namespace", namespace, "--run", run).wait()
	g.Expect(removed.code).To(Equal(0))
	g.Expect(removed.out).To(ContainSubstring("  ConfigMap abandoned/theirs (label of run %s)\n", run))
	g.Expect(c.CoreV1().ConfigMaps(namespace).Get(t.Context(), "theirs", metav1.GetOptions{})).To(HaveField("ResourceVersion", theirs.ResourceVersion))
	g.Expect(c.mentioning(t, run)).To(HaveExactElements(ContainSubstring("theirs")), "nothing else has its id")
	still, err := c.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(still.DeletionTimestamp).To(BeNil())
}
