package framework

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discoveryPolling is how often discovery is asked for a new kind; it cannot be watched.
const discoveryPolling = 50 * time.Millisecond

// CreateDefinition defines a custom kind and waits until the server serves it.
func (c *Cluster) CreateDefinition(ctx context.Context, manifest *Object) *Object {
	ginkgo.GinkgoHelper()
	definition := c.Create(ctx, manifest)
	gomega.Eventually(ctx, c.History(definition)).Should(HaveObserved(Matching(definition, HaveCondition("Established"))))
	gomega.Eventually(ctx, func() error {
		_, err := c.session.Unrecorded.Mapping(definedBy(definition))
		return err
	}).WithPolling(discoveryPolling).Should(gomega.Succeed(), "discovery shows an established kind")
	return definition
}

// definedBy is an empty object of the kind that a definition defines.
func definedBy(definition *Object) *Object {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	object := &Object{}
	for _, version := range versions {
		name, _, _ := unstructured.NestedString(version.(map[string]any), "name")
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
	}
	return object
}
