package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// discoveryPolling is how often discovery is asked for a new kind; it cannot be watched.
const discoveryPolling = 50 * time.Millisecond

// CreateDefinition defines a custom kind and waits until the server serves all its versions that are to be served.
func (c *Cluster) CreateDefinition(ctx context.Context, manifest *Object) *Object {
	ginkgo.GinkgoHelper()
	definition := c.Create(ctx, manifest)
	gomega.Eventually(ctx, c.History(definition)).Should(HaveObserved(Matching(definition, HaveCondition("Established"))))
	for _, like := range definedBy(definition) {
		c.awaitServed(ctx, like)
	}
	return definition
}

// awaitServed waits until the server serves a kind that was defined.
func (c *Cluster) awaitServed(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() error {
		_, err := c.session.Harness.Mapping(like)
		return err
	}).WithPolling(discoveryPolling).Should(gomega.Succeed(), "discovery shows a kind that was defined")
}

// CustomKind makes manifests of the custom kind that the run's specs share, once the garbage collector has learned of it.
func (c *Cluster) CustomKind(ctx context.Context) func(name string) *Object {
	ginkgo.GinkgoHelper()
	return c.kindOfRun(ctx, c.session.CustomGroup())
}

// SpareKind is CustomKind, of a kind that is there for one spec to delete.
func (c *Cluster) SpareKind(ctx context.Context) func(name string) *Object {
	ginkgo.GinkgoHelper()
	group := c.session.SpareGroup()
	definition := fixtures.CustomResourceDefinition(group)
	read := c.session.Harness.Get(ctx, definition)
	if apierrors.IsNotFound(read.Err) || read.Err == nil && read.Object.GetDeletionTimestamp() != nil {
		group = c.Group() // an earlier try of this spec has deleted it
		c.CreateDefinition(ctx, fixtures.CustomResourceDefinition(group))
	}
	return c.kindOfRun(ctx, group)
}

// kindOfRun makes manifests of a kind that was defined when the run began.
func (c *Cluster) kindOfRun(ctx context.Context, group string) func(name string) *Object {
	ginkgo.GinkgoHelper()
	custom := func(name string) *Object { return fixtures.CustomResource(group, name) }
	c.awaitServed(ctx, custom("any"))
	c.AwaitLearned(ctx, custom("any"))
	return custom
}

// collectorLearns bounds how long a garbage collector may take to learn of a new kind: it looks every 30 s, and waits for 30 s
// more when the time before it found a kind of which it could not read the objects.
const collectorLearns = 90 * time.Second

// AwaitLearned waits until the garbage collector has learned of a custom kind: it has then taken an object of that kind.
func (c *Cluster) AwaitLearned(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	if lost := c.session.LostGarbageCollector; lost != "" {
		ginkgo.Fail("not waited for the garbage collector again: " + lost)
	}
	owner := c.Create(ctx, canary(like), c.named("learned-"+rand.String(6)))
	dependent := c.Create(ctx, canary(like), Named("of-"+owner.GetName()), OwnedBy(owner))
	c.Delete(ctx, owner, Background)
	gomega.Eventually(ctx, c.History(dependent)).WithTimeout(c.AtLeast(collectorLearns)).Should(
		HaveObserved(Deleted(dependent)), "the garbage collector learns of a custom kind")
}

// servedVerbs are the verbs that discovery names for an object's kind in its version; none where it does not name the kind.
func (c *Cluster) servedVerbs(ctx context.Context, like *Object) []string {
	ginkgo.GinkgoHelper()
	response := c.session.Harness.Send(ctx, client.Request{Method: http.MethodGet, Path: "/apis/" + like.GetAPIVersion()})
	if apierrors.IsNotFound(response.Err) {
		return nil
	}
	c.must(c.judge(ctx, response))
	served := metav1.APIResourceList{}
	if err := json.Unmarshal(response.Body, &served); err != nil {
		ginkgo.Fail(fmt.Sprintf("read the response to %s: %v", response.Request, err))
	}
	for _, resource := range served.APIResources {
		if resource.Kind == like.GetKind() && !strings.Contains(resource.Name, "/") {
			return resource.Verbs
		}
	}
	return nil
}

// AwaitVerbs waits until discovery names verbs for an object's kind that match.
func (c *Cluster) AwaitVerbs(ctx context.Context, like *Object, verbs types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() []string { return c.servedVerbs(ctx, like) }).WithPolling(discoveryPolling).Should(
		verbs, "the verbs that discovery names for "+like.GetKind())
}

// definedBy are empty objects of the kind that a definition defines, one a version that is served.
func definedBy(definition *Object) []*Object {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var objects []*Object
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _, _ := unstructured.NestedString(version, "name")
		object := &Object{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		objects = append(objects, object)
	}
	return objects
}

// UnreachableConversion has the custom resources of a definition converted by a webhook that cannot be reached: those that are
// stored in another version than the one asked for cannot be read.
func UnreachableConversion(definition *Object) {
	setConversion(definition, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig": map[string]any{"url": unreachable}, "conversionReviewVersions": []any{"v1"},
		},
	})
}

// NoConversion has the versions of a definition differ in nothing but their name.
func NoConversion(definition *Object) { setConversion(definition, map[string]any{"strategy": "None"}) }

func setConversion(definition *Object, conversion map[string]any) {
	// A definition's spec is an object, so this cannot fail.
	_ = unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion")
}
