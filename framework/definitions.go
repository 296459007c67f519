package framework

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// discoveryPolling is how often discovery is asked for a new kind; it cannot be watched.
const discoveryPolling = 50 * time.Millisecond

// CreateDefinition defines a custom kind and waits until the server serves it.
func (c *Cluster) CreateDefinition(ctx context.Context, manifest *Object) *Object {
	ginkgo.GinkgoHelper()
	definition := c.Create(ctx, manifest)
	gomega.Eventually(ctx, c.History(definition)).Should(HaveObserved(Matching(definition, HaveCondition("Established"))))
	c.awaitServed(ctx, definedBy(definition))
	return definition
}

// awaitServed waits until the server serves a kind that was defined.
func (c *Cluster) awaitServed(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() error {
		_, err := c.session.Unrecorded.Mapping(like)
		return err
	}).WithPolling(discoveryPolling).Should(gomega.Succeed(), "discovery shows a kind that was defined")
}

// collectorLearns bounds how long a garbage collector may take to learn of a new kind: it looks every 30 s.
const collectorLearns = 75 * time.Second

// CustomKind makes manifests of the custom kind that the run's specs share, when the garbage collector has learned of it.
func (c *Cluster) CustomKind(ctx context.Context) func(name string) *Object {
	ginkgo.GinkgoHelper()
	group := c.session.CustomGroup()
	custom := func(name string) *Object { return fixtures.CustomResource(group, name) }
	c.awaitServed(ctx, custom("any"))
	owner := c.Create(ctx, canary(custom("any")))
	dependent := c.Create(ctx, canary(custom("any")), Named("dependent-of-"+owner.GetName()), OwnedBy(owner))
	c.Delete(ctx, owner, Background)
	gomega.Eventually(ctx, c.History(dependent)).WithTimeout(max(collectorLearns, c.session.WaitTimeout)).Should(
		HaveObserved(Deleted(dependent)), "the garbage collector learns of a custom kind")
	return custom
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
