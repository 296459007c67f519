package environment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/admission"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

// Before specs run, an object of each kind that they create is created as a server-side dry-run. What admission refuses, or changes in a
// way that matters, skips the behaviors that need it. A ReplicaSet of one pod shows the same of the pods that controllers create.

// obstacle is what admission does to a kind of objects, and the behaviors that are skipped because of it.
type obstacle struct {
	check     string
	cause     string
	remedy    string
	behaviors []string
}

// FixtureFindings are what admission refuses or changes of what the run's behaviors create, and which behaviors are skipped because of it.
// Setup has found it out.
func (e *Environment) FixtureFindings() []v1alpha1.Finding {
	var findings []v1alpha1.Finding
	for _, obstacle := range e.obstacles {
		findings = append(findings, v1alpha1.Finding{
			Check: obstacle.check, Severity: v1alpha1.Skips, Cause: obstacle.cause,
			Effect:    fmt.Sprintf("behaviors skipped: %d", len(obstacle.behaviors)),
			Behaviors: obstacle.behaviors, Remedy: obstacle.remedy,
		})
	}
	return findings
}

// prevented says of each behavior that is skipped because of an obstacle why.
func (e *Environment) prevented() map[string]string {
	prevented := map[string]string{}
	for _, obstacle := range e.obstacles {
		for _, id := range obstacle.behaviors {
			prevented[id] = cmp.Or(prevented[id], obstacle.cause)
		}
	}
	return prevented
}

// tryFixtures finds the obstacles. What cannot be found out is left to the specs. It fails only where the runner itself does.
func (e *Environment) tryFixtures(ctx context.Context) error {
	return crash.Caught("try the fixtures", func() error {
		e.obstacles = e.findObstacles(ctx)
		return nil
	})
}

func (e *Environment) findObstacles(ctx context.Context) []obstacle {
	e.mutators = e.findMutators(ctx)
	kinds := map[string]bool{}
	for _, id := range e.behaviorIDs(nil) {
		for _, kind := range readFixtures()[id].Creates {
			kinds[kind] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(kinds))
	found := make([][]obstacle, len(sorted)+1)
	workqueue.ParallelizeUntil(ctx, probesAtOnce, len(found), func(i int) {
		if i == len(sorted) {
			found[i] = e.probeControlledPods(ctx)
			return
		}
		found[i] = e.probeKind(ctx, sorted[i])
	})
	return slices.DeleteFunc(slices.Concat(found...), func(o obstacle) bool { return len(o.behaviors) == 0 })
}

// probesAtOnce is how many kinds are probed at the same time.
const probesAtOnce = 8

// behaviorIDs are the ids of the run's behaviors that have a need, or of all where none is named.
func (e *Environment) behaviorIDs(need *v1alpha1.Feature) []string {
	var ids []string
	for _, behavior := range e.options.Behaviors {
		if need == nil || slices.Contains(behavior.Features, *need) {
			ids = append(ids, behavior.ID)
		}
	}
	return ids
}

// probeKind creates an object of a kind as a dry-run.
func (e *Environment) probeKind(ctx context.Context, kind string) []obstacle {
	sample := fixtures.Sample(kindOf(kind))
	if sample == nil {
		return nil
	}
	mapping, err := e.client.Mapping(sample)
	if err != nil {
		return nil
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if e.inSharedNamespace() && !namespaced {
		return nil
	}
	e.complete(sample, namespaced)
	sample.SetFinalizers([]string{client.Hold})
	response := e.client.DryRunCreate(ctx, sample)
	if refusal, is := response.RefusedByAdmission(); is && !refusal.OnlyDryRun {
		return []obstacle{refused(response.Action(), refusal, creating(kind, e.behaviorIDs(nil)))}
	}
	if response.Err != nil || response.Object == nil {
		return nil
	}
	node := v1alpha1.Node
	return e.changed("create "+mapping.Resource.Resource, mapping.Resource, admission.Changes(response.Sent(), response.Object),
		func(change admission.Change) []string {
			switch {
			case change.Containers:
				return creating(kind, e.behaviorIDs(&node))
			case change.Holds && slices.Contains(inEveryNamespace, kind):
				return append(creating(kind, e.behaviorIDs(nil)), creating("v1/Namespace", e.behaviorIDs(nil))...)
			}
			return creating(kind, e.behaviorIDs(nil))
		})
}

// inEveryNamespace are the kinds of which built-in controllers create an object in each namespace, which holds the namespace as long as it
// is there.
var inEveryNamespace = []string{"v1/ConfigMap", "v1/ServiceAccount"}

// complete gives an object a free name and what the run gives all that it creates.
func (e *Environment) complete(object *client.Object, namespaced bool) {
	if namespaced {
		object.SetNamespace(e.Session(1).Namespace)
	}
	if object.GetName() == "sample" {
		object.SetName(e.options.Run + "-sample-" + rand.String(6))
	}
	object.SetLabels(labels.Merge(object.GetLabels(), e.labels(1)))
	takeImages(object.Object, e.options.ImageRegistry)
}

// takeImages takes the images in a part of an object from a mirror, as the objects of specs do.
func takeImages(part any, mirror string) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			takeImages(element, mirror)
		}
	case map[string]any:
		if image, is := part["image"].(string); is {
			part["image"] = fixtures.WithRegistry(image, mirror)
		}
		for _, field := range part {
			takeImages(field, mirror)
		}
	}
}

// refused is the obstacle that admission refuses something.
func refused(action string, refusal admission.Refusal, behaviors []string) obstacle {
	found := obstacle{check: "admission", cause: action + ": " + refusal.String(), behaviors: behaviors}
	switch refusal.Plugin {
	case admission.ResourceQuota, admission.LimitRange:
		found.check, found.remedy = "quota", "run in a namespace with more quota (--namespace), or exempt the run's namespaces (--namespace-label)"
	default:
		found.remedy = "satisfy it with --label, --annotation or --pod-overlay, or exempt the run's namespaces with --namespace-label"
	}
	return found
}

// changed are the obstacles that admission changes something. A change that nobody but the API server can have made is no obstacle: the
// specs are to notice it.
func (e *Environment) changed(action string, resource schema.GroupVersionResource, changes []admission.Change, affected func(admission.Change) []string) []obstacle {
	by, is := e.mutators.By(resource)
	if !is {
		return nil
	}
	var found []obstacle
	for _, change := range changes {
		check := "admission"
		if change.Containers {
			check = "sidecars"
		}
		found = append(found, obstacle{
			check: check, cause: fmt.Sprintf("%s: %s %s", action, by, change.Text), behaviors: affected(change),
			remedy: "exempt what the run creates with --label, --annotation or --namespace-label",
		})
	}
	return found
}

// mutating are the resources of admission that changes objects.
var mutating = []client.Collection{
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, Kind: "MutatingWebhookConfiguration"},
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy"},
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1beta1", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy"},
}

// mutatorsAtOnce is how many configurations of a kind are read.
const mutatorsAtOnce = "500"

// findMutators lists the mutating admission of others.
func (e *Environment) findMutators(ctx context.Context) admission.Mutators {
	var mutators admission.Mutators
	for _, collection := range mutating {
		objects, next, response := e.client.Page(ctx, collection, url.Values{"limit": {mutatorsAtOnce}})
		switch {
		case apierrors.IsNotFound(response.Err):
			continue
		case response.Err != nil:
			mutators.Hidden = fmt.Sprintf("admission that cannot be listed (missing permission: list %s)", collection.Resource.Resource)
		case next != "":
			mutators.Hidden = fmt.Sprintf("one of more than %s %s", mutatorsAtOnce, collection.Resource.Resource)
		}
		for _, object := range objects {
			if _, own := object.GetLabels()[client.RunLabel]; !own {
				mutators.Known = append(mutators.Known, admission.MutatorOf(object))
			}
		}
	}
	return mutators
}

const (
	// controlledTime bounds how long the ReplicaSet controller may take to create a pod, or to report that it cannot.
	controlledTime = 10 * time.Second
	// controlledPolling is how often the canary is read.
	controlledPolling = 50 * time.Millisecond
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// probeControlledPods creates a ReplicaSet of one pod and waits until the pod exists or is refused. A controller that does neither is
// left to the specs. Nothing is tried where the cluster was made for the run: its controllers may still be starting, and nobody governs it.
func (e *Environment) probeControlledPods(ctx context.Context) []obstacle {
	affected := controlling("v1/Pod", e.behaviorIDs(nil))
	if len(affected) == 0 || e.CreatesNothing() || slices.Contains(e.options.Supported, v1alpha1.KCM) {
		return nil
	}
	canary := fixtures.ReplicaSet("sample")
	e.complete(canary, true)
	_ = unstructured.SetNestedField(canary.Object, int64(1), "spec", "replicas")
	for name, value := range e.labels(1) {
		_ = unstructured.SetNestedField(canary.Object, value, "spec", "template", "metadata", "labels", name)
	}
	created := e.client.Create(ctx, canary)
	if created.Err != nil {
		return nil // the dry-run shows why
	}
	defer e.client.Remove(context.WithoutCancel(ctx), canary, e.removal())
	var found []obstacle
	_ = wait.PollUntilContextTimeout(ctx, controlledPolling, e.slowed(controlledTime), true, func(ctx context.Context) (bool, error) {
		if refusal, is := refusedReplicas(e.client.Get(ctx, canary)); is {
			found = []obstacle{refused("create the pods of controllers", refusal, affected)}
			return true, nil
		}
		pod := e.podOf(ctx, created.Object)
		if pod == nil {
			return false, nil
		}
		found = e.changed("create the pods of controllers", pods, admission.Changes(templateOf(created.Sent(), pod), pod), func(change admission.Change) []string {
			if node := v1alpha1.Node; change.Containers {
				return controlling("v1/Pod", e.behaviorIDs(&node))
			}
			return affected
		})
		return true, nil
	})
	return found
}

// refusedReplicas reads from a ReplicaSet's conditions that admission refused its pods.
func refusedReplicas(response client.Response) (admission.Refusal, bool) {
	if response.Err != nil || response.Object == nil {
		return admission.Refusal{}, false
	}
	failure := meta.FindStatusCondition(describe.Conditions(response.Object), "ReplicaFailure")
	if failure == nil || failure.Status != metav1.ConditionTrue {
		return admission.Refusal{}, false
	}
	return admission.Read(failure.Message)
}

// podOf is the pod that a ReplicaSet controls; nil where there is none yet.
func (e *Environment) podOf(ctx context.Context, owner *client.Object) *client.Object {
	collection := client.Collection{Resource: pods, Kind: "Pod", Namespace: owner.GetNamespace()}
	objects, _ := e.client.List(ctx, collection, client.RunLabel+"="+e.options.Run)
	for _, object := range objects {
		if reference := metav1.GetControllerOf(object); reference != nil && reference.UID == owner.GetUID() {
			return object
		}
	}
	return nil
}

// templateOf is a pod as a ReplicaSet's controller sent it.
func templateOf(owner, pod *client.Object) *client.Object {
	sent := &client.Object{Object: map[string]any{}}
	spec, _, _ := unstructured.NestedMap(owner.Object, "spec", "template", "spec")
	_ = unstructured.SetNestedMap(sent.Object, spec, "spec")
	sent.SetOwnerReferences(pod.GetOwnerReferences())
	return sent
}
