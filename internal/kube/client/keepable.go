package client

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// restricting are the kinds whose objects restrict what others do with objects of the namespace or with its nodes.
var restricting = []schema.GroupKind{
	{Kind: "ResourceQuota"}, {Kind: "LimitRange"}, {Group: "policy", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
}

// Keepable reports whether an object of the run may stay after it, because it affects nothing outside of the run's namespaces. Of the
// cluster-scoped objects these are only the namespaces, and definitions that no webhook converts.
func Keepable(object *Object) bool {
	kind := object.GroupVersionKind().GroupKind()
	switch {
	case object.GetNamespace() != "":
		return !slices.Contains(restricting, kind)
	case kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy")
		return strategy != "Webhook"
	}
	return kind == schema.GroupKind{Kind: "Namespace"}
}
