package workloads

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// kind is a kind of objects that clients of a round create.
type kind struct {
	name string
	// manifest is an object with a name.
	manifest func(name string) *client.Object
	// replicas is the path of the number of pods that clients may change; nil for none.
	replicas []string
	// template is the path of the pod template, and mutable reports that clients may change it.
	template []string
	mutable  bool
	// selects is the path of the labels by which it selects the pods of another workload; nil if it does not.
	selects []string
	// scheduled reports that it creates a Job when its status shows that one is due.
	scheduled bool
	// onNode reports that it requires a node that exists.
	onNode bool
	// shares reports that clients may take pods from it, and give it others, by their labels.
	shares bool
}

var podTemplate = []string{"spec", "template"}

// budget is the kind of PodDisruptionBudgets.
const budget = "PodDisruptionBudget"

// kinds are those of the objects of a round, in turn.
var kinds = []kind{
	{name: "ReplicaSet", manifest: fixtures.ReplicaSet, replicas: []string{"spec", "replicas"}, template: podTemplate, shares: true},
	{name: budget, manifest: ofGroup, replicas: []string{"spec", "minAvailable"}, selects: []string{"spec", "selector", "matchLabels"}},
	{name: "Deployment", manifest: fixtures.Deployment, replicas: []string{"spec", "replicas"}, template: podTemplate, mutable: true, shares: true},
	{name: "StatefulSet", manifest: fixtures.OrderedStatefulSet, replicas: []string{"spec", "replicas"}, template: podTemplate, mutable: true},
	{name: "Job", manifest: fixtures.JobWithoutRetries, replicas: []string{"spec", "parallelism"}, template: podTemplate},
	{name: "Service", manifest: fixtures.Service, selects: []string{"spec", "selector"}, onNode: true},
	{name: "ReplicationController", manifest: fixtures.ReplicationController, replicas: []string{"spec", "replicas"}, template: podTemplate, shares: true},
	{name: "StatefulSet", manifest: fixtures.StatefulSetDeletingClaims, replicas: []string{"spec", "replicas"}, template: podTemplate, mutable: true},
	{name: "Job", manifest: fixtures.IndexedJob, replicas: []string{"spec", "parallelism"}, template: podTemplate},
	{name: "CronJob", manifest: fixtures.CronJobWithoutRetries, template: []string{"spec", "jobTemplate", "spec", "template"}, scheduled: true},
	{name: "DaemonSet", manifest: onLabeled, template: podTemplate, mutable: true, onNode: true},
}

// firstBudget is the index of the first PodDisruptionBudget among the objects of a round.
var firstBudget = slices.IndexFunc(kinds, func(k kind) bool { return k.name == budget })

// ofGroup is a PodDisruptionBudget of the pods of a workload.
func ofGroup(name string) *client.Object {
	return fixtures.PodDisruptionBudgetOf(1, name, watching.GroupLabel, name)
}

// dependents identify the kinds that controllers create for them.
var dependents = []*client.Object{
	fixtures.UnscheduledPod("any"), fixtures.ControllerRevision(), fixtures.PersistentVolumeClaim("any"), fixtures.EndpointSlice(),
}

// nodeLabel is the label by which DaemonSets select the node of a round.
const nodeLabel = client.Domain + "/daemons"

func onLabeled(name string) *client.Object { return fixtures.DaemonSet(name, nodeLabel, "true") }

// prepared is an object of the kind as a client creates it: its pods have a node and a template, and all that is created for it has labels.
func (k kind) prepared(name string, s *stage, template string) *client.Object {
	object := k.manifest(name)
	mark(object.Object, s.Selected())
	if k.selects != nil {
		setField(object, map[string]any{watching.GroupLabel: s.grouped(name)}, k.selects...)
	}
	if k.template == nil {
		return object
	}
	pod, _, _ := unstructured.NestedMap(object.Object, k.template...)
	mark(pod, s.Selected())
	setField(object, pod, k.template...)
	if jobs, ok, _ := unstructured.NestedMap(object.Object, "spec", "jobTemplate"); ok {
		mark(jobs, s.Selected())
		setField(object, jobs, "spec", "jobTemplate")
	}
	setField(object, s.node, append(slices.Clone(k.template), "spec", "nodeName")...)
	setField(object, template, append(slices.Clone(k.template), "metadata", "annotations", watching.TemplateAnnotation)...)
	if claims, ok, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates"); ok {
		for _, claim := range claims {
			mark(claim.(map[string]any), s.Selected())
		}
		setField(object, claims, "spec", "volumeClaimTemplates")
	}
	return object
}

// mark adds labels to an object or a template.
func mark(object map[string]any, more labels.Set) {
	marked := &client.Object{Object: object}
	marked.SetLabels(labels.Merge(marked.GetLabels(), more))
}

// setField sets a field of a manifest. It replaces what is no object on the way.
func setField(object *client.Object, value any, path ...string) {
	_ = unstructured.SetNestedField(object.Object, value, path...)
}

// isControlledBy reports whether an object is a pod of a workload, or of a ReplicaSet of it.
func (s *stage) isControlledBy(object *client.Object, uid string) bool {
	controller := metav1.GetControllerOf(object)
	if controller == nil {
		return false
	}
	above := s.objects[controller.Kind+"/"+controller.Name]
	return string(controller.UID) == uid || above != nil && above.GetUID() == controller.UID && s.isControlledBy(above, uid)
}
