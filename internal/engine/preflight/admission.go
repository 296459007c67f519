package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// Before the specs, setup creates an object of each kind that they create as a server-side dry-run. Behaviors whose objects admission
// refuses, or changes in a way that matters, are skipped. A ReplicaSet with one pod shows the same for pods of controllers. Behaviors whose kinds
// are not served, or for which a permission is missing, skip themselves, and are only announced.

// probeKind creates an object of a kind as a dry-run.
func probeKind(ctx context.Context, t Target, mutators admission.Mutators, kind string) []skip {
	if reason := (skipReason{}); errors.As(t.served(kindOf(kind)), &reason) {
		reason.check = kindsCheck
		return []skip{{reason, t.needing(kind), true}}
	}
	sample := fixtures.Sample(kindOf(kind))
	if sample == nil || len(t.creating(kind)) == 0 {
		return nil
	}
	t.place(sample)
	collection, err := t.Client.CollectionOf(sample)
	if err != nil || t.Shared && collection.Namespace == "" {
		return nil
	}
	sample.SetNamespace(collection.Namespace)
	sample.SetFinalizers([]string{client.Hold})
	response := t.Client.DryRunCreate(ctx, sample)
	if refusal, ok := response.RefusedByAdmission(); ok && !refusal.OnlyDryRun {
		return []skip{refused(response.Action(), refusal, t.creating(kind))}
	}
	if response.Err != nil || response.Object == nil {
		return nil
	}
	return changed(mutators, "create "+collection.Resource.Resource, collection.Resource, admission.Changes(response.Sent(), response.Object),
		func(change admission.Change) []string {
			switch {
			case change.Containers:
				return t.creating(kind, v1alpha1.Node)
			case change.Holds && slices.Contains(inEveryNamespace, kind):
				return append(t.creating(kind), t.creating("v1/Namespace")...)
			}
			return t.creating(kind)
		})
}

// inEveryNamespace are the kinds of which built-in controllers create an object in each namespace that exists as long as the namespace.
var inEveryNamespace = []string{"v1/ConfigMap", "v1/ServiceAccount"}

// refused returns the skip of a refusal.
func refused(action string, refusal admission.Refusal, behaviors []string) skip {
	reason := skipReason{
		admissionCheck, action + ": " + refusal.String(),
		"satisfy it with --label, --annotation or --pod-overlay, or exempt the run's namespaces with --namespace-label",
	}
	switch refusal.Plugin {
	case admission.ResourceQuota, admission.LimitRange:
		reason.check, reason.remedy = quotaCheck, "run in a namespace with more quota (--namespace), or exempt the run's namespaces (--namespace-label)"
	}
	return skip{skipReason: reason, behaviors: behaviors}
}

// changed returns the skips of changes. A change that only the API server can have made skips nothing: the specs must detect it.
func changed(
	mutators admission.Mutators, action string, resource schema.GroupVersionResource, changes []admission.Change, affected func(admission.Change) []string,
) []skip {
	by, ok := mutators.By(resource)
	if !ok {
		return nil
	}
	var found []skip
	for _, change := range changes {
		check := admissionCheck
		if change.Containers {
			check = sidecarsCheck
		}
		found = append(found, skip{behaviors: affected(change), skipReason: skipReason{
			check, fmt.Sprintf("%s: %s %s", action, by, change.Text), "exempt what the run creates with --label, --annotation or --namespace-label",
		}})
	}
	return found
}

// mutating are the collections of mutating admission.
var mutating = []client.Collection{
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, Kind: "MutatingWebhookConfiguration"},
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy"},
	{Resource: schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1beta1", Resource: "mutatingadmissionpolicies"}, Kind: "MutatingAdmissionPolicy"},
}

// maxParallelMutators limits how many configurations of a kind are read.
const maxParallelMutators = "500"

// findMutators lists the cluster's mutating admission.
func findMutators(ctx context.Context, with *client.Client) admission.Mutators {
	var mutators admission.Mutators
	for _, collection := range mutating {
		objects, next, response := with.Page(ctx, collection, url.Values{"limit": {maxParallelMutators}})
		switch {
		case apierrors.IsNotFound(response.Err):
			continue
		case response.Err != nil:
			mutators.Hidden = fmt.Sprintf("admission that cannot be listed (missing permission: list %s)", collection.Resource.Resource)
		case next != "":
			mutators.Hidden = fmt.Sprintf("one of more than %s %s", maxParallelMutators, collection.Resource.Resource)
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
// that. It does nothing on a cluster that was created for the run, which has no policies, and whose controllers may still be starting or are
// known to be missing.
func probeControlledPods(ctx context.Context, t Target, mutators admission.Mutators) []skip {
	affected := t.controlling("v1/Pod")
	_, uncontrolled := t.Unsupported[v1alpha1.KCM]
	if len(affected) == 0 || t.NoCreate || t.createdForRun() || uncontrolled {
		return nil
	}
	canary := fixtures.ReplicaSet("sample")
	t.place(canary)
	_ = unstructured.SetNestedField(canary.Object, int64(1), "spec", "replicas")
	for name, value := range t.Labels() {
		_ = unstructured.SetNestedField(canary.Object, value, "spec", "template", "metadata", "labels", name)
	}
	created := t.Client.Create(ctx, canary)
	if created.Err != nil {
		return nil // the dry-run has reported the reason
	}
	defer t.Client.Remove(context.WithoutCancel(ctx), canary, t.Removal())
	var found []skip
	_ = wait.PollUntilContextTimeout(ctx, controlledPolling, t.Slowed(controlledTime), true, func(ctx context.Context) (bool, error) {
		if refusal, ok := refusedReplicas(t.Client.Get(ctx, canary)); ok {
			found = []skip{refused("create the pods of controllers", refusal, affected)}
			return true, nil
		}
		pod := podOf(ctx, t, created.Object)
		if pod == nil {
			return false, nil
		}
		found = changed(mutators, "create the pods of controllers", pods, admission.Changes(templateOf(created.Sent(), pod), pod), func(change admission.Change) []string {
			if change.Containers {
				return t.controlling("v1/Pod", v1alpha1.Node)
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

// podOf returns the pod of a ReplicaSet; nil when there is none yet.
func podOf(ctx context.Context, t Target, owner *client.Object) *client.Object {
	collection := client.Collection{Resource: pods, Kind: "Pod", Namespace: owner.GetNamespace()}
	objects, _ := t.Client.List(ctx, collection, client.RunLabel+"="+t.Run)
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
