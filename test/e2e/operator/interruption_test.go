package operator

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stoppedBy is the label of a Deployment that a run has stopped.
const stoppedBy = "deletion-conformance.github.io/stopped-by"

// interrupted starts a run and signals it while the operator is stopped. It returns the run's id.
func (o operator) interrupted(t *testing.T, signal syscall.Signal) string {
	t.Helper()
	g := NewWithT(t)
	begun := o.run(t, "--label-filter", "operator.controller-stopped", "--procs", "1")
	g.Expect(begun.Start()).To(Succeed())
	var stopped *appsv1.Deployment
	g.Eventually(func() string {
		stopped = o.deployed(t)
		return stopped.Labels[stoppedBy]
	}).WithTimeout(waitTimeout).WithPolling(polling).ShouldNot(BeEmpty())
	g.Expect(begun.Process.Signal(signal)).To(Succeed())
	g.Expect(begun.Wait()).NotTo(Succeed())
	g.Expect(*stopped.Spec.Replicas).To(BeZero())
	return stopped.Labels[stoppedBy]
}

// cleanUp runs `runner cleanup`.
func (o operator) cleanUp(t *testing.T, run string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "runner"), "cleanup", "--kubeconfig", o.kubeconfig, "--run", run,
		"--controller", "deploy/"+deployment, "--controller-namespace", o.name).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(said))
}

// haveAsBefore matches a Deployment that no run has stopped, with this number of replicas.
func haveAsBefore(replicas int32) gomegatypes.GomegaMatcher {
	return And(HaveField("Spec.Replicas", HaveValue(Equal(replicas))), HaveField("Labels", BeEmpty()))
}

// restartedAfterInterruption: an interrupted run starts the operator again.
func (l laboratory) restartedAfterInterruption(t *testing.T) {
	t.Parallel()
	o := l.deploy(t, "interrupted", "")
	o.interrupted(t, syscall.SIGINT)
	NewWithT(t).Expect(o.deployed(t)).To(haveAsBefore(1))
}

// restartedByCleanup: `runner cleanup` starts an operator that a killed run has stopped, if its user names it. The lease of the run is only a
// hint.
func (l laboratory) restartedByCleanup(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "killed", "")
	run := o.interrupted(t, syscall.SIGKILL)
	g.Expect(o.deployed(t).Labels).To(HaveKeyWithValue(stoppedBy, run), "nobody has started it")
	said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "runner"), "cleanup", "--kubeconfig", o.kubeconfig, "--run", run, "--dry-run").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(said)).To(ContainSubstring("add --controller deploy/gadgets --controller-namespace killed"))
	o.cleanUp(t, run)
	g.Expect(o.deployed(t)).To(haveAsBefore(1))
}

// leftAsOthersScaledIt: cleanup leaves a Deployment alone that someone has scaled since.
func (l laboratory) leftAsOthersScaledIt(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "scaled", "")
	run := o.interrupted(t, syscall.SIGKILL)
	patch := []byte(`{"spec":{"replicas":2}}`)
	_, err := o.AppsV1().Deployments(o.name).Patch(t.Context(), deployment, types.MergePatchType, patch, metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	o.cleanUp(t, run)
	g.Expect(o.deployed(t)).To(haveAsBefore(2))
}

// restartedByExploration: an exploration restarts the operator between its operations and as an injected fault. It finds nothing, and the operator
// runs as before.
func (l laboratory) restartedByExploration(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "restarted", "")
	before := o.deployed(t)
	said, err := o.runner(t, "explore", "--scenario", "operator", "--inject", "restart", "--for", "40s", "--seed", "1", "--reduce-for", "0").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	after := o.deployed(t)
	g.Expect(after).To(haveAsBefore(1))
	g.Expect(after.Generation).To(BeNumerically(">=", before.Generation+2), "it was scaled to 0 and back")
}
