package operator

import (
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/conformance"
)

// definitionDeletion is the behavior that deletes the operator's definition.
const definitionDeletion = "operator.crd-deletion"

// tested runs it on a cluster that was created for the run, and returns its outcome.
func (o operator) tested(t *testing.T) v1alpha1.Result {
	t.Helper()
	gadget := &unstructured.Unstructured{}
	gadget.SetAPIVersion(o.group() + "/v1")
	gadget.SetKind("Gadget")
	whole, _ := conformance.Run(t.Context(), o.config, conformance.Options{
		Resources: []string{o.resource()}, Fixtures: []*unstructured.Unstructured{gadget}, Controller: "deploy/" + deployment, ControllerNamespace: o.name,
		LabelFilter: definitionDeletion, Disruptive: true, OwnCluster: true, Processes: 1, WaitTimeout: failsAfter, CleanupTimeout: failsAfter, Output: t.Output(),
	})
	NewWithT(t).Expect(whole.Clusters).To(HaveLen(1))
	for _, result := range whole.Clusters[0].Results {
		if result.ID == definitionDeletion {
			return result
		}
	}
	return v1alpha1.Result{}
}

// defined returns the uid of the operator's definition.
func (o operator) defined(t *testing.T) types.UID {
	t.Helper()
	found, err := apiextensions.NewForConfigOrDie(o.config).ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), o.resource(), metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found.UID
}

// haveOutcome matches a result.
func haveOutcome(outcome v1alpha1.Outcome) gomegatypes.GomegaMatcher {
	return HaveField("Outcome", outcome)
}

// deletesDefinition: on a cluster that was created for the run, the definition is deleted and is there again for other behaviors.
func (l laboratory) deletesDefinition(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "owned", "")
	before := o.defined(t)
	g.Expect(o.tested(t)).To(haveOutcome(v1alpha1.Passed))
	g.Expect(o.defined(t)).NotTo(Equal(before))
}

// noticesKeptDefinition: an operator that keeps its definition fails the behavior.
func (l laboratory) noticesKeptDefinition(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(l.deploy(t, "protects", "protects-definition").tested(t)).To(haveOutcome(v1alpha1.Failed))
}

// sparesOthers: a definition with objects of others is not deleted.
func (l laboratory) sparesOthers(t *testing.T) {
	t.Parallel()
	g, o := NewWithT(t), l.deploy(t, "shared", "")
	others := &unstructured.Unstructured{}
	others.SetAPIVersion(o.group() + "/v1")
	others.SetKind("Gadget")
	others.SetName("others")
	gadgets := dynamic.NewForConfigOrDie(o.config).Resource(schema.GroupVersionResource{Group: o.group(), Version: "v1", Resource: "gadgets"})
	_, err := gadgets.Namespace("default").Create(t.Context(), others, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	before := o.defined(t)

	g.Expect(o.tested(t)).To(haveOutcome(v1alpha1.Skipped))
	g.Expect(o.defined(t)).To(Equal(before))
}
