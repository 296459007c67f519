package framework

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

const (
	// Domain prefixes every label, annotation and finalizer of the harness.
	Domain = client.Domain
	// Hold is the harness's own finalizer: it freezes an object in the middle of its deletion.
	Hold = client.Hold
)

// Group is an API group of this spec's own. It is named after the behavior, and after the first try by its number, too: what
// an earlier try has defined may be on its way out.
func (c *Cluster) Group() string {
	group := c.behavior + "." + c.session.GroupDomain
	if c.attempt > 1 {
		return fmt.Sprintf("try%d.%s", c.attempt, group)
	}
	return group
}

// selector selects what this spec made.
func (c *Cluster) selector() string {
	return labels.Set{client.RunLabel: c.session.Run, client.SpecLabel: c.id}.String()
}

// Labels are on all that this spec makes.
func (c *Cluster) Labels() map[string]string {
	return labels.Merge(c.session.Labels(), labels.Set{client.SpecLabel: c.id})
}

// namedByContent are the cluster-scoped kinds whose names are given by what they say. The group that they name is the
// run's own.
var namedByContent = []string{"CustomResourceDefinition", "APIService"}

// ending ends the names of what the spec makes in namespaces. In a namespace that the run shares it contains the run's id, by which
// the run knows what controllers make, and report, about its objects.
func (c *Cluster) ending() string {
	if c.session.Shared {
		return c.session.Run + "-" + c.id
	}
	return c.id
}

// FreeName is a name that no object has but one that the spec creates from a manifest with that name.
func (c *Cluster) FreeName(name string) string { return name + "-" + c.ending() }

// Prepare completes a manifest as Create does, and creates nothing: a free name, the namespace, the run's labels, and the spec's options. What is
// cluster-scoped has the run's id in its name.
func (c *Cluster) Prepare(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	object := c.session.Harness.StandInFor(manifest).DeepCopy()
	mapping, err := c.session.Harness.Mapping(object)
	c.mustServe(ctx, object, err)
	switch {
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		object.SetNamespace(c.namespace)
		object.SetName(c.FreeName(object.GetName()))
	case !slices.Contains(namedByContent, object.GetKind()):
		object.SetName(object.GetName() + "-" + c.session.Run + "-" + c.id)
	}
	c.complete(object.Object)
	if c.session.Shared {
		if !c.session.NoCreate {
			c.mustStayInside(mapping)
		}
		c.narrow(object)
	}
	for _, option := range options {
		option(object)
	}
	return object
}

// rulesForAll are the resources whose objects rule over everything in a namespace.
var rulesForAll = []string{"resourcequotas", "limitranges"}

// mustStayInside skips the spec where it would make something that others would notice who share the namespace.
func (c *Cluster) mustStayInside(mapping *meta.RESTMapping) {
	ginkgo.GinkgoHelper()
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace || slices.Contains(rulesForAll, mapping.Resource.Resource) {
		ginkgo.Skip(c.session.Outside("create " + mapping.Resource.GroupResource().String()))
	}
}

// MustOwnNamespace skips the spec where it would do something to a namespace that the run shares.
func MustOwnNamespace(c *Cluster, what string) {
	ginkgo.GinkgoHelper()
	if c.session.Shared {
		ginkgo.Skip(c.session.Outside(what))
	}
}

// narrow has a selector of pods select the spec's own only: other workers' specs use the same labels.
func (c *Cluster) narrow(object *Object) {
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "selector"}} {
		selector, found, err := unstructured.NestedStringMap(object.Object, path...)
		if err != nil || !found || len(selector) == 0 {
			continue
		}
		selector[client.SpecLabel] = c.id
		if unstructured.SetNestedStringMap(object.Object, selector, path...) == nil {
			return
		}
	}
}

// complete labels an object and every template in it (of pods, jobs and claims) with the run's labels, and takes images
// from the run's mirror.
func (c *Cluster) complete(part any) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			c.complete(element)
		}
	case map[string]any:
		if metadata, is := part["metadata"].(map[string]any); is {
			metadata["labels"] = c.labelled(metadata["labels"])
		}
		if image, is := part["image"].(string); is {
			part["image"] = fixtures.WithRegistry(image, c.session.ImageRegistry)
		}
		for name, field := range part {
			if name != "metadata" {
				c.complete(field)
			}
		}
	}
}

// labelled are the labels of a manifest, with the run's.
func (c *Cluster) labelled(existing any) map[string]any {
	labelled := map[string]any{}
	if existing, are := existing.(map[string]any); are {
		maps.Copy(labelled, existing)
	}
	for name, value := range c.Labels() {
		labelled[name] = value
	}
	return labelled
}
