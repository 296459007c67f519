// Package overlay is what a run does to its objects because the cluster's policies require it: labels and annotations on every object and
// template, labels on namespaces, a strategic merge patch for every pod and pod template, and images from a mirror.
package overlay

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Overlay is added to every object that a run creates. The zero value adds nothing.
type Overlay struct {
	// Labels and Annotations are added to every object and to its templates. Values that an object sets itself take precedence.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// NamespaceLabels are added to namespaces. They take precedence over Labels.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// PodOverlay is a strategic merge patch for pods and pod templates; nil for none.
	PodOverlay map[string]any `json:"podOverlay,omitempty"`
	// ImageRegistry is a mirror for images; empty for the original registries. Complete does not replace them, because fixtures are compared
	// with what was created.
	ImageRegistry string `json:"imageRegistry,omitempty"`
}

// isEmpty reports whether the overlay adds nothing.
func (o Overlay) isEmpty() bool {
	return len(o.Labels)+len(o.Annotations)+len(o.NamespaceLabels)+len(o.PodOverlay) == 0
}

var (
	podKind           = schema.GroupKind{Kind: "Pod"}
	nodeKind          = schema.GroupKind{Kind: "Node"}
	namespaceKind     = schema.GroupKind{Kind: "Namespace"}
	definitionKind    = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	claimTemplateKind = schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}
)

// Complete returns a copy of an object with the overlay. It is idempotent. It fails when the pod patch does not fit a pod template of the
// object.
func (o Overlay) Complete(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o.isEmpty() {
		return object, nil
	}
	completed, err := copyOf(object)
	if err != nil {
		return nil, fmt.Errorf("copy %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	if err := o.complete(completed.Object, object.GroupVersionKind().GroupKind()); err != nil {
		return nil, fmt.Errorf("apply the pod overlay to %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return completed, nil
}

// copyOf copies through JSON, because specs may set values of types that DeepCopy does not support.
func copyOf(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	copied := &unstructured.Unstructured{}
	return copied, utiljson.Unmarshal(encoded, &copied.Object)
}

func (o Overlay) complete(content map[string]any, kind schema.GroupKind) error {
	switch kind {
	case namespaceKind:
		addTo(content, "labels", o.NamespaceLabels)
	case nodeKind:
		addTo(content, "labels", o.nodeSelector()) // so that DaemonSets, whose pods get the selector, schedule a pod there
	}
	o.mark(content)
	switch kind {
	case definitionKind:
		return nil // its schema is not a template, whatever its properties are called
	case claimTemplateKind:
		if template, ok := content["spec"].(map[string]any); ok {
			o.mark(template)
		}
	case podKind:
		if isPod(content) {
			if err := o.patch(content); err != nil {
				return err
			}
		}
	}
	return o.completeTemplates(content)
}

// mark adds the labels and annotations to the metadata.
func (o Overlay) mark(content map[string]any) {
	addTo(content, "labels", o.Labels)
	addTo(content, "annotations", o.Annotations)
}

// addTo adds labels or annotations to metadata. It keeps existing values, because selectors may depend on them.
func addTo(content map[string]any, field string, added map[string]string) {
	if len(added) == 0 {
		return
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	values, are := metadata[field].(map[string]any)
	if !are {
		values = map[string]any{}
		metadata[field] = values
	}
	for name, value := range added {
		if _, has := values[name]; !has {
			values[name] = value
		}
	}
}

// completeTemplates completes templates of pods, jobs and claims at any depth.
func (o Overlay) completeTemplates(part any) error {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			if err := o.completeTemplates(element); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, field := range part {
			if name == "metadata" || name == "status" {
				continue
			}
			if err := o.completeField(name, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// completeField completes a field that is a template or a list of templates, and its content.
func (o Overlay) completeField(name string, field any) error {
	templates := []any{field}
	if list, ok := field.([]any); ok {
		templates = list
	}
	for _, element := range templates {
		template, ok := element.(map[string]any)
		if !ok || !isTemplate(name, template) {
			continue
		}
		o.mark(template)
		if isPod(template) {
			if err := o.patch(template); err != nil {
				return err
			}
		}
	}
	return o.completeTemplates(field)
}

// isTemplate reports whether a field is an object template: one of pods with metadata, or one of the built-in kinds. Fields of custom
// resources can have such names without being templates.
func isTemplate(name string, field map[string]any) bool {
	if !strings.HasSuffix(strings.TrimSuffix(strings.ToLower(name), "s"), "template") {
		return false
	}
	if _, has := field["spec"].(map[string]any); !has {
		return false
	}
	_, marked := field["metadata"].(map[string]any)
	return marked || isPod(field) || name == "jobTemplate" || strings.HasPrefix(name, "volumeClaimTemplate")
}

// isPod reports whether content has the shape of a pod: containers in its spec.
func isPod(content map[string]any) bool {
	spec, _ := content["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, container := range containers {
		if _, ok := container.(map[string]any); !ok {
			return false
		}
	}
	return len(containers) > 0
}

// nodeSelector returns the nodeSelector of the pod patch.
func (o Overlay) nodeSelector() map[string]string {
	selector, _, _ := unstructured.NestedStringMap(o.PodOverlay, "spec", "nodeSelector")
	return labels.Set(selector)
}

// isMirror reports whether a pod is a mirror pod of a static pod, which may not refer to secrets.
func isMirror(pod map[string]any) bool {
	_, ok, _ := unstructured.NestedString(pod, "metadata", "annotations", corev1.MirrorPodAnnotationKey)
	return ok
}
