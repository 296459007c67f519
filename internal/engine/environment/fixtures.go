package environment

import (
	"cmp"
	"context"
	"errors"
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

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// Before the specs, setup creates an object of each kind that they create as a server-side dry-run. Behaviors whose objects admission
// refuses, or changes in a way that matters, are skipped. A ReplicaSet with one pod shows the same for pods of controllers. Behaviors whose kinds
// are not served, or for which a permission is missing, skip themselves, and are only announced.

// obstacle is what admission does to objects of a kind, that the kind is not served, or that a permission is missing, and the behaviors that
// are skipped because of it.
type obstacle struct {
	check     string
	cause     string
	remedy    string
	behaviors []string
	// announced is set when the behaviors skip themselves.
	announced bool
}

func (o obstacle) asFeature() missingFeature { return missingFeature{o.check, o.cause, o.remedy} }

// FixtureFindings describes what admission refuses or changes among the objects of the run's behaviors, and which behaviors are skipped
// because of it. Setup determines that.
func (e *Environment) FixtureFindings() []v1alpha1.Finding {
	var findings []v1alpha1.Finding
	for _, obstacle := range e.obstacles {
		if obstacle.announced {
			continue // its behaviors may be skipped for another reason
		}
		findings = append(findings, v1alpha1.Finding{
			Check: obstacle.check, Severity: v1alpha1.Skips, Cause: obstacle.cause,
			Effect:    fmt.Sprintf("behaviors skipped: %d", len(obstacle.behaviors)),
			Behaviors: obstacle.behaviors, Remedy: obstacle.remedy,
		})
	}
	return findings
}

// prevented maps the behaviors that are skipped because of an obstacle to the reasons.
func (e *Environment) prevented() map[string]string {
	prevented := map[string]string{}
	for _, obstacle := range e.obstacles {
		if obstacle.announced {
			continue
		}
		for _, id := range obstacle.behaviors {
			prevented[id] = cmp.Or(prevented[id], obstacle.cause)
		}
	}
	return prevented
}

// tryFixtures determines the obstacles. It fails only after a panic; what it cannot determine the specs will.
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
		for _, kind := range readFixtures()[id].Kinds() {
			kinds[kind] = true
		}
	}
	probes := []func() []obstacle{
		func() []obstacle { return e.probeRoles(ctx, e.options.Slowed(probeTime)) },
		func() []obstacle { return e.probeControlledPods(ctx) },
		func() []obstacle { return e.missingPermissions(ctx) },
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		probes = append(probes, func() []obstacle { return e.probeKind(ctx, kind) })
	}
	found := make([][]obstacle, len(probes))
	crash.InParallel(probesAtOnce, len(probes), func(i int) { found[i] = probes[i]() })
	return slices.DeleteFunc(slices.Concat(found...), func(o obstacle) bool { return len(o.behaviors) == 0 })
}

// probesAtOnce is the number of kinds that are probed in parallel.
const probesAtOnce = 8

// behaviorIDs returns the ids of the run's behaviors that require a feature, or of all for nil.
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
	if missing := unmet(""); errors.As(e.served(kindOf(kind)), &missing) {
		return []obstacle{{check: kindsCheck, cause: missing.Error(), behaviors: requiring(kind, e.behaviorIDs(nil)), announced: true}}
	}
	sample := fixtures.Sample(kindOf(kind))
	if sample == nil || len(creating(kind, e.behaviorIDs(nil))) == 0 {
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
	if refusal, ok := response.RefusedByAdmission(); ok && !refusal.OnlyDryRun {
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

// inEveryNamespace are the kinds of which built-in controllers create an object in each namespace that exists as long as the namespace.
var inEveryNamespace = []string{"v1/ConfigMap", "v1/ServiceAccount"}

// complete sets a unique name, and the labels and other additions of the run.
func (e *Environment) complete(object *client.Object, namespaced bool) {
	if namespaced {
		object.SetNamespace(e.namespaceOf(1))
	}
	if object.GetName() == "sample" {
		object.SetName(e.options.Run + "-sample-" + rand.String(6))
	}
	object.SetLabels(labels.Merge(object.GetLabels(), e.labels(1)))
	takeImages(object.Object, e.options.ImageRegistry)
}

// takeImages replaces the registry of the images in a part of an object by a mirror, as for objects of specs.
func takeImages(part any, mirror string) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			takeImages(element, mirror)
		}
	case map[string]any:
		if image, ok := part["image"].(string); ok {
			part["image"] = fixtures.WithRegistry(image, mirror)
		}
		for _, field := range part {
			takeImages(field, mirror)
		}
	}
}

// refused returns the obstacle of a refusal.
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

// changed returns the obstacles of changes. A change that only the API server can have made is not an obstacle: the specs must detect it.
func (e *Environment) changed(action string, resource schema.GroupVersionResource, changes []admission.Change, affected func(admission.Change) []string) []obstacle {
	by, ok := e.mutators.By(resource)
	if !ok {
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

// mutating are the collections of mutating admission.
var mutating = []client.Collection{
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, Kind: "MutatingWebhookConfiguration"},
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy"},
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1beta1", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy"},
}

// mutatorsAtOnce limits how many configurations of a kind are read.
const mutatorsAtOnce = "500"

// findMutators lists the cluster's mutating admission.
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
	// controlledTime limits how long the ReplicaSet controller may take to create a pod, or to report that it cannot.
	controlledTime = 10 * time.Second
	// controlledPolling is the interval for reading the canary.
	controlledPolling = 50 * time.Millisecond
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// probeControlledPods creates a ReplicaSet with one pod and waits until the pod exists or is refused. If neither happens, the specs detect
// that. It does nothing on a cluster that was created for the run, which has no policies, and whose controllers may still be starting.
func (e *Environment) probeControlledPods(ctx context.Context) []obstacle {
	affected := controlling("v1/Pod", e.behaviorIDs(nil))
	if len(affected) == 0 || e.CreatesNothing() || e.createdForRun() {
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
		return nil // the dry-run has reported the reason
	}
	defer e.client.Remove(context.WithoutCancel(ctx), canary, e.removal())
	var found []obstacle
	_ = wait.PollUntilContextTimeout(ctx, controlledPolling, e.options.Slowed(controlledTime), true, func(ctx context.Context) (bool, error) {
		if refusal, ok := refusedReplicas(e.client.Get(ctx, canary)); ok {
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

// createdForRun reports whether the cluster was created for the run, with all its controllers.
func (e *Environment) createdForRun() bool { return slices.Contains(e.options.Supported, v1alpha1.KCM) }

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

// podOf returns the pod of a ReplicaSet; nil when there is none yet.
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

// templateOf returns a pod as the ReplicaSet controller sent it.
func templateOf(owner, pod *client.Object) *client.Object {
	sent := &client.Object{Object: map[string]any{}}
	spec, _, _ := unstructured.NestedMap(owner.Object, "spec", "template", "spec")
	_ = unstructured.SetNestedMap(sent.Object, spec, "spec")
	sent.SetOwnerReferences(pod.GetOwnerReferences())
	return sent
}
