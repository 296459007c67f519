package watching

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// GroupLabel is the label by which the workloads of a round select their pods.
const GroupLabel = "app"

// WorkloadEvent is what the model knows of an event in a round of workloads that began at a time.
func WorkloadEvent(began time.Time, event journal.Event) history.Event {
	return history.Event{
		At: event.At.Sub(began), Type: string(event.Type), Name: KeyOf(event.Object), Object: Snapshot(event.Object), Workload: workloadOf(event.Object),
	}
}

// KeyOf names an object and its kind: Pod/a.
func KeyOf(object *client.Object) string { return object.GetKind() + "/" + object.GetName() }

// workloadOf is what matters of an object for the workload to which it belongs.
func workloadOf(object *client.Object) *history.Workload {
	known := &history.Workload{Kind: object.GetKind()}
	if controller := metav1.GetControllerOf(object); controller != nil {
		known.Controller = string(controller.UID)
	}
	switch known.Kind {
	case "Pod":
		describePod(known, object)
	case "Job":
		describeJob(known, object)
	case "EndpointSlice":
		known.Group, known.Endpoints = object.GetLabels()[discoveryv1.LabelServiceName], readyPods(object)
	case "PersistentVolumeClaim":
		known.Group = object.GetLabels()[GroupLabel]
	case "PodDisruptionBudget":
		describeBudget(known, object)
	case "Service", "ReplicationController":
		known.Group = text(object, "spec", "selector", GroupLabel)
	default:
		known.Group = text(object, "spec", "selector", "matchLabels", GroupLabel)
	}
	switch known.Kind {
	case "DaemonSet":
		known.Replicas = 1 // of the only node with the label
	case "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet":
		known.Replicas = count(object, "spec", "replicas")
	}
	policy := func(when string) string { return text(object, "spec", "persistentVolumeClaimRetentionPolicy", when) }
	known.Retains = known.Kind == "StatefulSet" && policy("whenDeleted") != "Delete" && policy("whenScaled") != "Delete"
	if known.Template == "" {
		known.Template = text(object, "spec", "template", "metadata", "annotations", TemplateAnnotation)
	}
	return known
}

func describePod(known *history.Workload, object *client.Object) {
	pod := describe.Pod(object)
	known.Group, known.Template, known.Node = pod.Labels[GroupLabel], pod.Annotations[TemplateAnnotation], pod.Spec.NodeName
	known.Failed = pod.Status.Phase == corev1.PodFailed
	known.Finished = known.Failed || pod.Status.Phase == corev1.PodSucceeded
	for _, condition := range pod.Status.Conditions {
		known.Ready = known.Ready || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	}
}

// describeJob reads how many pods a Job requires: at most as many as must still succeed.
func describeJob(known *history.Workload, object *client.Object) {
	conditions := describe.Conditions(object)
	known.Finished = meta.IsStatusConditionTrue(conditions, string(batchv1.JobComplete)) || meta.IsStatusConditionTrue(conditions, string(batchv1.JobFailed))
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	if !known.Finished && !suspended {
		known.Replicas = min(count(object, "spec", "parallelism"), count(object, "spec", "completions")-count(object, "status", "succeeded"))
	}
}

func describeBudget(known *history.Workload, object *client.Object) {
	known.Group, known.Replicas = text(object, "spec", "selector", "matchLabels", GroupLabel), count(object, "spec", "minAvailable")
	disrupted, _, _ := unstructured.NestedMap(object.Object, "status", "disruptedPods")
	known.Allowed, known.Disrupted = count(object, "status", "disruptionsAllowed"), model.NamesOf(slices.Collect(maps.Keys(disrupted))...)
}

// readyPods are the uids of the pods that an EndpointSlice shows as ready.
func readyPods(object *client.Object) model.Names {
	var uids []string
	for _, endpoint := range describe.Endpoints(object) {
		if ready := endpoint.Conditions.Ready; endpoint.TargetRef != nil && (ready == nil || *ready) {
			uids = append(uids, string(endpoint.TargetRef.UID))
		}
	}
	return model.NamesOf(uids...)
}

func text(object *client.Object, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

func count(object *client.Object, path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(object.Object, path...)
	return value
}
