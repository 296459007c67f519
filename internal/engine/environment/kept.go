package environment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// keptName is the name of the ConfigMap in each worker's namespace that is kept. `runner cleanup` recognizes such namespaces by it.
const keptName = "deletion-conformance-kept"

// kept are the objects of failed specs, which teardown keeps. They are in namespaces of the run, with the definitions of their kinds.
// What restricts others is deleted, too; see client.Keepable.
type kept struct {
	// specs are the behaviors of the failed specs, by the specs' labels.
	specs map[string]string
	// workers are the namespaces in which they ran, and whole those that they created.
	workers, whole sets.Set[string]
	// groups are the API groups of their objects.
	groups sets.Set[string]
	// objects describe their objects, by behavior, and the definitions of their kinds that no spec has created.
	objects map[string][]string
}

// sharedKinds is the place of a behavior for the definitions of kinds that specs share.
const sharedKinds = "definitions of these kinds"

// Keep makes Teardown keep the objects of a failed spec, given its label and the namespace of its worker.
func (e *Environment) Keep(behavior, spec, namespace string) {
	if e.kept == nil {
		e.kept = &kept{specs: map[string]string{}, workers: sets.New[string]()}
	}
	e.kept.specs[spec] = behavior
	e.kept.workers.Insert(namespace)
}

// Kept describes the objects that Teardown has kept, one a line, below their behaviors.
func (e *Environment) Kept() (lines []string) {
	if e.kept == nil {
		return nil
	}
	for _, behavior := range slices.Sorted(maps.Keys(e.kept.objects)) {
		lines = append(lines, behavior+":")
		for _, object := range e.kept.objects[behavior] {
			lines = append(lines, "  "+object)
		}
	}
	return lines
}

// has reports whether an object of the run stays. Objects without a spec, such as ServiceAccounts of pods, stay in the namespace of a worker.
func (k *kept) has(object *client.Object) bool {
	if k == nil || !client.Keepable(object) {
		return false
	}
	name, namespace, spec := object.GetName(), object.GetNamespace(), object.GetLabels()[client.SpecLabel]
	switch {
	case object.GetKind() == "Namespace":
		return k.workers.Has(name) || k.whole.Has(name)
	case namespace == "":
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		return k.groups.Has(group)
	case k.whole.Has(namespace):
		return true
	}
	isLease := object.GetKind() == "Lease" && name == leaseName
	return k.workers.Has(namespace) && !isLease && (spec == "" || k.specs[spec] != "")
}

// findKept finds what stays. Objects that the credentials may not list, they could not create.
func (t *teardown) findKept(ctx context.Context) {
	k := t.kept
	k.whole, k.groups, k.objects = sets.New[string](), sets.New[string](), map[string][]string{}
	for _, collection := range []client.Collection{client.Namespaces, client.Definitions} {
		objects, _ := t.client.List(ctx, collection, client.RunLabel+"="+t.run)
		for _, object := range objects {
			behavior := k.specs[object.GetLabels()[client.SpecLabel]]
			if behavior == "" || !t.client.Owns(collection, object) || !client.Keepable(object) {
				continue
			}
			k.objects[behavior] = append(k.objects[behavior], describe.Name(object))
			if group, _, _ := unstructured.NestedString(object.Object, "spec", "group"); group != "" {
				k.groups.Insert(group)
			} else {
				k.whole.Insert(object.GetName())
			}
		}
	}
	for _, namespace := range t.keptNamespaces() {
		content, _ := contentOf(ctx, t.client, namespace, "")
		for _, object := range content {
			if behavior := k.specs[object.GetLabels()[client.SpecLabel]]; behavior != "" && k.has(object) {
				k.groups.Insert(object.GroupVersionKind().Group)
				k.objects[behavior] = append(k.objects[behavior], describe.Name(object))
			}
		}
	}
}

func (t *teardown) keptNamespaces() []string { return sets.List(t.kept.workers.Union(t.kept.whole)) }

// clearKept deletes what other specs have left where something stays, and marks these namespaces. Definitions that stay lose the finalizers
// of the run.
func (t *teardown) clearKept(ctx, waiting context.Context) error {
	definitions, _ := t.client.List(waiting, client.Definitions, client.RunLabel+"="+t.run)
	for _, definition := range definitions {
		if t.client.Owns(client.Definitions, definition) && t.kept.has(definition) {
			t.client.RemoveFinalizers(waiting, definition, client.Removal{})
			if t.kept.specs[definition.GetLabels()[client.SpecLabel]] == "" {
				t.kept.objects[sharedKinds] = append(t.kept.objects[sharedKinds], describe.Name(definition))
			}
		}
	}
	var failures []error
	for _, namespace := range t.keptNamespaces() {
		if t.kept.workers.Has(namespace) {
			failures = append(failures, t.mark(waiting, namespace))
		}
		failures = append(failures, t.emptyNamespace(ctx, waiting, namespace))
	}
	return errors.Join(failures...)
}

// mark creates the ConfigMap in a worker's namespace that states why it is kept.
func (t *teardown) mark(ctx context.Context, namespace string) error {
	behaviors := map[string]any{}
	for _, behavior := range t.kept.specs {
		behaviors[behavior] = "failed in run " + t.run
	}
	mark := &client.Object{Object: map[string]any{"apiVersion": corev1.SchemeGroupVersion.String(), "kind": "ConfigMap", "data": behaviors}}
	mark.SetName(keptName)
	mark.SetNamespace(namespace)
	mark.SetLabels(map[string]string{client.RunLabel: t.run})
	if response := t.client.Create(ctx, mark); response.Err != nil && !apierrors.IsAlreadyExists(response.Err) {
		return fmt.Errorf("mark namespace %q as kept: %w", namespace, response.Err)
	}
	return nil
}
