package framework

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

const (
	// Domain is the prefix of every label, annotation and finalizer of the harness.
	Domain = client.Domain
	// Hold is the harness's finalizer. It freezes an object in mid-deletion.
	Hold = client.Hold
)

// Group is an API group for this spec. It contains the behavior and, for a retry, the number of the attempt, because the definitions of
// earlier attempts may still be terminating.
func (c *Cluster) Group() string {
	group := c.behavior + "." + c.session.GroupDomain
	if c.attempt > 1 {
		return fmt.Sprintf("try%d.%s", c.attempt, group)
	}
	return group
}

// selector selects this spec's objects.
func (c *Cluster) selector() string {
	return labels.Set{client.RunLabel: c.session.Run, client.SpecLabel: c.id}.String()
}

// NamespaceLabels are on the run's namespaces and on no others.
func (c *Cluster) NamespaceLabels() map[string]string {
	return labels.Set{client.RunLabel: c.session.Run}
}

// Labels are on all objects of this spec.
func (c *Cluster) Labels() map[string]string {
	return labels.Merge(c.session.Labels(), labels.Set{client.SpecLabel: c.id})
}

// namedByContent are the cluster-scoped kinds whose names are derived from their content. The API group in them belongs to the run.
var namedByContent = []string{"CustomResourceDefinition", "APIService"}

// ending is the suffix of the names of namespaced objects. In a shared namespace it contains the run's id, so that the run recognizes
// objects and Events of controllers that act on its objects.
func (c *Cluster) ending() string {
	if c.session.Shared {
		return c.session.Run + "-" + c.id
	}
	return c.id
}

// FreeName returns the name of the object that the spec creates from a manifest with this name.
func (c *Cluster) FreeName(name string) string { return name + "-" + c.ending() }

// Prepare completes a manifest as Create does, but creates nothing: a unique name, the namespace, the run's labels, and the options. Names
// of cluster-scoped objects contain the run's id.
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
	c.place(object)
	if c.session.Shared {
		if !c.session.NoCreate {
			c.mustNotAffectOthers(mapping)
		}
		c.narrow(object)
	}
	for _, option := range options {
		option(object)
	}
	return object
}

// rulesForAll are the resources whose objects affect everything in a namespace.
var rulesForAll = []string{"resourcequotas", "limitranges"}

// mustNotAffectOthers skips the spec when its object would affect other users of a shared namespace.
func (c *Cluster) mustNotAffectOthers(mapping *meta.RESTMapping) {
	ginkgo.GinkgoHelper()
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace || slices.Contains(rulesForAll, mapping.Resource.Resource) {
		ginkgo.Skip(c.session.Outside("create " + mapping.Resource.GroupResource().String()))
	}
}

// MustOwnNamespace skips the spec when the namespace is shared.
func MustOwnNamespace(c *Cluster, what string) {
	ginkgo.GinkgoHelper()
	if c.session.Shared {
		ginkgo.Skip(c.session.Outside(what))
	}
}

// narrow restricts a pod selector to this spec, because specs of other workers use the same labels.
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

// SpareNode returns the node on which the spec must run its pods, because it is disruptive and a node is kept for that; empty for any other spec.
func (c *Cluster) SpareNode() string {
	if c.disruptive && c.runsContainers {
		return c.session.SpareNode
	}
	return ""
}

// place keeps the pods of disruptive specs on the spare node, and others away from it. A workload may replace a pod on another node.
func (c *Cluster) place(object *Object) {
	if c.session.SpareNode == "" || !c.runsContainers {
		return
	}
	path, operator := []string{"spec"}, corev1.NodeSelectorOpNotIn
	if c.disruptive {
		operator = corev1.NodeSelectorOpIn
	}
	term := map[string]any{"matchFields": []any{map[string]any{
		"key": metav1.ObjectNameField, "operator": string(operator), "values": []any{c.session.SpareNode},
	}}}
	affinity := map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{term}}}
	if object.GetKind() != "Pod" {
		path = []string{"spec", "template", "spec"}
		if c.disruptive {
			affinity = map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": int64(100), "preference": term}}}
		}
	}
	if spec, has, _ := unstructured.NestedMap(object.Object, path...); has && spec["containers"] != nil {
		// This cannot fail, because the spec is an object.
		_ = unstructured.SetNestedMap(object.Object, affinity, append(path, "affinity", "nodeAffinity")...)
	}
}

// complete adds the run's labels to a manifest, and takes its images from the run's mirror.
func (c *Cluster) complete(manifest map[string]any) {
	c.label(manifest)
	fixtures.MirrorImages(manifest, c.session.ImageRegistry)
}

// label adds the run's labels to an object and every template in it (pods, jobs and claims).
func (c *Cluster) label(part any) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			c.label(element)
		}
	case map[string]any:
		if metadata, ok := part["metadata"].(map[string]any); ok {
			metadata["labels"] = c.labeled(metadata["labels"])
		}
		for name, field := range part {
			if name != "metadata" {
				c.label(field)
			}
		}
	}
}

// labeled returns the labels of a manifest with the run's.
func (c *Cluster) labeled(existing any) map[string]any {
	labeled := map[string]any{}
	if existing, are := existing.(map[string]any); are {
		maps.Copy(labeled, existing)
	}
	for name, value := range c.Labels() {
		labeled[name] = value
	}
	return labeled
}
