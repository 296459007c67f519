// Package definitions is what specs need of CustomResourceDefinitions: custom kinds of their own, those that the run's specs share, and
// the definition of the resource under test.
package definitions

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
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// discoveryPolling is how often discovery is asked for a new kind; it cannot be watched.
const discoveryPolling = 50 * time.Millisecond

// Create defines a custom kind and waits until the server serves all its versions that are to be served.
func Create(ctx context.Context, c *framework.Cluster, manifest *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	definition := c.Create(ctx, manifest)
	gomega.Eventually(ctx, c.History(definition)).Should(framework.HaveObserved(framework.Matching(definition, framework.HaveCondition("Established"))))
	for _, like := range definedBy(definition) {
		awaitServed(ctx, c, like)
	}
	return definition
}

// awaitServed waits until the server serves a kind that was defined.
func awaitServed(ctx context.Context, c *framework.Cluster, like *framework.Object) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() error {
		_, err := c.Session().Harness.Mapping(like)
		return err
	}).WithPolling(discoveryPolling).Should(gomega.Succeed(), "discovery shows a kind that was defined")
}

// Shared makes manifests of the custom kind that the run's specs share, once the garbage collector has learned of it.
func Shared(ctx context.Context, c *framework.Cluster) func(name string) *framework.Object {
	ginkgo.GinkgoHelper()
	return kindOfRun(ctx, c, c.Session().CustomGroup())
}

// Spare is Shared, of a kind that is there for one spec to delete.
func Spare(ctx context.Context, c *framework.Cluster) func(name string) *framework.Object {
	ginkgo.GinkgoHelper()
	group := c.Session().SpareGroup()
	definition := fixtures.CustomResourceDefinition(group)
	read := c.Session().Harness.Get(ctx, definition)
	if apierrors.IsNotFound(read.Err) || read.Err == nil && read.Object.GetDeletionTimestamp() != nil {
		group = c.Group() // an earlier try of this spec has deleted it
		Create(ctx, c, fixtures.CustomResourceDefinition(group))
	}
	return kindOfRun(ctx, c, group)
}

// kindOfRun makes manifests of a kind that was defined when the run began.
func kindOfRun(ctx context.Context, c *framework.Cluster, group string) func(name string) *framework.Object {
	ginkgo.GinkgoHelper()
	custom := func(name string) *framework.Object { return fixtures.CustomResource(group, name) }
	awaitServed(ctx, c, custom("any"))
	AwaitLearned(ctx, c, custom("any"))
	return custom
}

// unreachable is where nobody listens.
const unreachable = "https://127.0.0.1:1"

// collectorLearns bounds how long a garbage collector may take to learn of a new kind: it looks every 30 s, and waits for 30 s
// more when the time before it found a kind of which it could not read the objects.
const collectorLearns = 90 * time.Second

// AwaitLearned waits until the garbage collector has learned of a custom kind: it has then taken an object of that kind.
func AwaitLearned(ctx context.Context, c *framework.Cluster, like *framework.Object) {
	ginkgo.GinkgoHelper()
	if lost := c.Session().LostGarbageCollector; lost != "" {
		ginkgo.Fail("The garbage collector does not work: " + lost)
	}
	owner := c.Create(ctx, framework.Canary(like), framework.Named(c.FreeName("learned-"+rand.String(6))))
	dependent := c.Create(ctx, framework.Canary(like), framework.Named("of-"+owner.GetName()), framework.OwnedBy(owner))
	c.Delete(ctx, owner, framework.Background)
	gomega.Eventually(ctx, c.History(dependent)).WithTimeout(c.AtLeast(collectorLearns)).Should(
		framework.HaveObserved(framework.Deleted(dependent)), "the garbage collector learns of a custom kind")
}

// servedVerbs are the verbs that discovery names for an object's kind in its version; none where it does not name the kind.
func servedVerbs(ctx context.Context, c *framework.Cluster, like *framework.Object) []string {
	ginkgo.GinkgoHelper()
	response := c.Session().Harness.Send(ctx, client.Request{Method: http.MethodGet, Path: "/apis/" + like.GetAPIVersion()})
	if apierrors.IsNotFound(response.Err) {
		return nil
	}
	framework.Require(c.Check(ctx, response))
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
func AwaitVerbs(ctx context.Context, c *framework.Cluster, like *framework.Object, verbs types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() []string { return servedVerbs(ctx, c, like) }).WithPolling(discoveryPolling).Should(
		verbs, "the verbs that discovery names for "+like.GetKind())
}

// definedBy are empty objects of the kind that a definition defines, one a version that is served.
func definedBy(definition *framework.Object) []*framework.Object {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var objects []*framework.Object
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _, _ := unstructured.NestedString(version, "name")
		object := &framework.Object{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		objects = append(objects, object)
	}
	return objects
}

// UnreachableConversion has the custom resources of a definition converted by a webhook that cannot be reached: those that are
// stored in another version than the one asked for cannot be read.
func UnreachableConversion(definition *framework.Object) {
	setConversion(definition, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig": map[string]any{"url": unreachable}, "conversionReviewVersions": []any{"v1"},
		},
	})
}

// NoConversion has the versions of a definition differ in nothing but their name.
func NoConversion(definition *framework.Object) {
	setConversion(definition, map[string]any{"strategy": "None"})
}

func setConversion(definition *framework.Object, conversion map[string]any) {
	// A definition's spec is an object, so this cannot fail.
	_ = unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion")
}
