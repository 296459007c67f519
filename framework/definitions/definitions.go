// Package definitions creates and deletes CustomResourceDefinitions: a spec's own, those that the run's specs share, and that of the
// resource under test.
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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// discoveryPolling is the interval for reading discovery, which cannot be watched.
const discoveryPolling = 50 * time.Millisecond

// Create creates a definition and waits until all its served versions are available.
func Create(ctx context.Context, c *framework.Cluster, manifest *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	definition := c.Create(ctx, manifest)
	gomega.Eventually(ctx, c.History(definition)).Should(framework.HaveObserved(framework.Matching(definition, framework.HaveCondition("Established"))))
	for _, like := range definedBy(definition) {
		awaitServed(ctx, c, like)
	}
	return definition
}

// awaitServed waits until the server serves a new kind.
func awaitServed(ctx context.Context, c *framework.Cluster, like *framework.Object) {
	ginkgo.GinkgoHelper()
	AwaitListed(ctx, c, like, gomega.Succeed())
}

// AwaitListed waits until the error of finding an object's kind in the discovery of all kinds matches.
func AwaitListed(ctx context.Context, c *framework.Cluster, like *framework.Object, found types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() error {
		_, err := c.Session().Harness.Mapping(like)
		return err
	}).WithPolling(discoveryPolling).Should(found, "whether discovery lists "+like.GetKind())
}

// Shared returns manifests of the custom kind that the run's specs share, after the garbage collector has discovered it.
func Shared(ctx context.Context, c *framework.Cluster) func(name string) *framework.Object {
	ginkgo.GinkgoHelper()
	return kindOfRun(ctx, c, c.Session().CustomGroup())
}

// Spare is Shared for a kind that one spec may delete.
func Spare(ctx context.Context, c *framework.Cluster) func(name string) *framework.Object {
	ginkgo.GinkgoHelper()
	group := c.Session().SpareGroup()
	definition := fixtures.CustomResourceDefinition(group)
	read := c.Session().Harness.Get(ctx, definition)
	if apierrors.IsNotFound(read.Err) || read.Err == nil && read.Object.GetDeletionTimestamp() != nil {
		group = c.Group() // an earlier attempt of this spec has deleted it
		Create(ctx, c, fixtures.CustomResourceDefinition(group))
	}
	return kindOfRun(ctx, c, group)
}

// kindOfRun returns manifests of a kind that was defined when the run started.
func kindOfRun(ctx context.Context, c *framework.Cluster, group string) func(name string) *framework.Object {
	ginkgo.GinkgoHelper()
	custom := func(name string) *framework.Object { return fixtures.CustomResource(group, name) }
	awaitServed(ctx, c, custom("any"))
	AwaitCollectorDiscovery(ctx, c, custom("any"))
	return custom
}

// unreachable is an address on which nothing listens.
const unreachable = "https://127.0.0.1:1"

// Finalization limits how long an API server may take to delete the instances of a deleted CustomResourceDefinition, and to remove it. Five workers
// do that, and each waits for up to a minute for instances that finalizers hold, which other clients may have.
const Finalization = 4 * time.Minute

// AwaitRemoval waits until a deleted CustomResourceDefinition is removed.
func AwaitRemoval(ctx context.Context, c *framework.Cluster, definition *framework.Object) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(definition)).WithTimeout(c.Session().AtLeast(Finalization)).Should(
		framework.HaveObserved(framework.Deleted(definition)))
}

// collectorDiscoveryTimeout limits how long a garbage collector may take to discover a new kind. It checks every 30 s, and waits for up to
// 30 s more after it could not list the objects of a kind. It starts again when the definitions of others disappear meanwhile.
const collectorDiscoveryTimeout = 4 * time.Minute

// AwaitCollectorDiscovery waits until the garbage collector has discovered a custom kind, by a canary of that kind.
func AwaitCollectorDiscovery(ctx context.Context, c *framework.Cluster, like *framework.Object) {
	ginkgo.GinkgoHelper()
	if lost := c.Session().LostGarbageCollector; lost != "" {
		ginkgo.Fail(lost)
	}
	manifest := framework.Canary(like)
	manifest.SetName("learned-" + rand.String(6))
	owner := c.Create(ctx, manifest)
	dependent := c.Create(ctx, framework.Canary(like), framework.Named("of-"+owner.GetName()), framework.OwnedBy(owner))
	c.Delete(ctx, owner, framework.Background)
	gomega.Eventually(ctx, c.History(dependent)).WithTimeout(c.Session().AtLeast(collectorDiscoveryTimeout)).Should(
		framework.HaveObserved(framework.Deleted(dependent)), "the garbage collector must discover a custom kind")
}

// servedVerbs returns the verbs that discovery lists for an object's kind and version; none when the kind is missing.
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

// AwaitVerbs waits until the verbs that discovery lists for an object's kind match.
func AwaitVerbs(ctx context.Context, c *framework.Cluster, like *framework.Object, verbs types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() []string { return servedVerbs(ctx, c, like) }).WithPolling(discoveryPolling).Should(
		verbs, "the verbs in discovery for "+like.GetKind())
}

// definedBy returns empty objects of a definition's kind, one for each served version.
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

// UnreachableConversion sets a conversion webhook that cannot be reached: objects that are stored in another version than the requested one
// cannot be read.
func UnreachableConversion(definition *framework.Object) {
	setConversion(definition, map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig": map[string]any{"url": unreachable}, "conversionReviewVersions": []any{"v1"},
		},
	})
}

// NoConversion sets the conversion strategy None.
func NoConversion(definition *framework.Object) {
	setConversion(definition, map[string]any{"strategy": "None"})
}

func setConversion(definition *framework.Object, conversion map[string]any) {
	// This cannot fail, because a definition's spec is an object.
	_ = unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion")
}
