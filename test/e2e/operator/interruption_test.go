package operator

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
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
	said, err := exec.CommandContext(t.Context(), filepath.Join(bin, "runner"), "cleanup", "--kubeconfig", o.kubeconfig, "--run", run).CombinedOutput()
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

// restartedByCleanup: `runner cleanup` starts an operator that a killed run has stopped.
func (l laboratory) restartedByCleanup(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "killed", "")
	run := o.interrupted(t, syscall.SIGKILL)
	g.Expect(o.deployed(t).Labels).To(HaveKeyWithValue(stoppedBy, run), "nobody has started it")
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

// gadgets are the operator's objects.
func (o operator) gadgets() dynamic.NamespaceableResourceInterface {
	return dynamic.NewForConfigOrDie(o.config).Resource(schema.GroupVersionResource{Group: o.group(), Version: "v1", Resource: "gadgets"})
}

// sparesOthers: a definition with objects of others is not deleted.
func (l laboratory) sparesOthers(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "shared", "")
	others := &unstructured.Unstructured{}
	others.SetAPIVersion(o.group() + "/v1")
	others.SetKind("Gadget")
	others.SetName("others")
	made, err := o.gadgets().Namespace("default").Create(t.Context(), others, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	outcomes := o.run(t, "--label-filter", "operator.crd-deletion", "--procs", "1").outcomes(t)

	g.Expect(outcomes).To(HaveKeyWithValue("operator.crd-deletion", v1alpha1.Skipped))
	left, err := o.gadgets().Namespace("default").Get(t.Context(), "others", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(And(HaveField("GetUID()", made.GetUID()), HaveField("GetDeletionTimestamp()", BeNil())))
}

// definedAgainByCleanup: `runner cleanup` restores a definition that a killed run has deleted.
func (l laboratory) definedAgainByCleanup(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "undefined", "protects-definition") // which keeps the run waiting
	definitions := apiextensions.NewForConfigOrDie(o.config).ApiextensionsV1().CustomResourceDefinitions()
	defined := func() (*apiextensionsv1.CustomResourceDefinition, error) {
		return definitions.Get(t.Context(), o.resource(), metav1.GetOptions{})
	}
	before, err := defined()
	g.Expect(err).NotTo(HaveOccurred())
	begun := o.run(t, "--label-filter", "operator.crd-deletion", "--procs", "1")
	g.Expect(begun.Start()).To(Succeed())
	g.Eventually(defined).WithTimeout(waitTimeout).WithPolling(polling).Should(HaveField("DeletionTimestamp", Not(BeNil())))
	held, err := o.gadgets().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(held.Items).NotTo(BeEmpty())
	g.Expect(begun.Process.Kill()).To(Succeed())
	g.Expect(begun.Wait()).NotTo(Succeed())

	o.cleanUp(t, held.Items[0].GetLabels()["deletion-conformance.github.io/run"])

	g.Expect(defined()).To(And(
		HaveField("UID", Not(Equal(before.UID))), HaveField("Spec", before.Spec), HaveField("DeletionTimestamp", BeNil())))
	policies, err := o.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(policies.Items).NotTo(ContainElement(HaveField("Spec.MatchConstraints.ResourceRules", ContainElement(
		HaveField("APIGroups", ConsistOf(o.group()))))), "others may create Gadgets again")
}
