package watching

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// with sets a field of an object.
func with(object *client.Object, value any, path ...string) *client.Object {
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		panic(err)
	}
	return object
}

// controlled makes an object one of a controller.
func controlled(object *client.Object) *client.Object {
	return with(object, []any{map[string]any{"apiVersion": "v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": true}}, "metadata", "ownerReferences")
}

func TestWorkloadEvent(t *testing.T) {
	ready := []any{map[string]any{"type": "Ready", "status": "True"}}
	complete := []any{map[string]any{"type": "Complete", "status": "True"}}
	endpoints := []any{
		map[string]any{"addresses": []any{"192.0.2.1"}, "targetRef": map[string]any{"uid": "p"}, "conditions": map[string]any{"ready": true}},
		map[string]any{"addresses": []any{"192.0.2.2"}, "targetRef": map[string]any{"uid": "q"}, "conditions": map[string]any{"ready": false}},
		map[string]any{"addresses": []any{"192.0.2.3"}},
	}
	for name, test := range map[string]struct {
		object *client.Object
		known  history.Workload
	}{
		"a ReplicaSet":              {fixtures.ReplicaSet("a"), history.Workload{Kind: "ReplicaSet", Group: "a", Replicas: 2}},
		"with a template":           {with(fixtures.Deployment("a"), "7", "spec", "template", "metadata", "annotations", TemplateAnnotation), history.Workload{Kind: "Deployment", Group: "a", Replicas: 2, Template: "7"}},
		"of a Deployment":           {controlled(fixtures.ReplicaSet("a")), history.Workload{Kind: "ReplicaSet", Group: "a", Replicas: 2, Controller: "u"}},
		"of version 1":              {fixtures.ReplicationController("a"), history.Workload{Kind: "ReplicationController", Group: "a", Replicas: 2}},
		"a DaemonSet":               {fixtures.DaemonSet("a", "label", "x"), history.Workload{Kind: "DaemonSet", Group: "a", Replicas: 1}},
		"that retains claims":       {fixtures.StatefulSetWithClaims("a"), history.Workload{Kind: "StatefulSet", Group: "a", Replicas: 2, Retains: true}},
		"that deletes claims":       {with(fixtures.StatefulSet("a"), "Delete", "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"), history.Workload{Kind: "StatefulSet", Group: "a", Replicas: 2}},
		"a Job":                     {fixtures.Job("a"), history.Workload{Kind: "Job", Replicas: 2}},
		"a Job with one left":       {with(fixtures.Job("a"), int64(1), "status", "succeeded"), history.Workload{Kind: "Job", Replicas: 1}},
		"a suspended Job":           {with(fixtures.Job("a"), true, "spec", "suspend"), history.Workload{Kind: "Job"}},
		"a finished Job":            {with(fixtures.Job("a"), complete, "status", "conditions"), history.Workload{Kind: "Job", Finished: true}},
		"a pod":                     {controlled(with(fixtures.UnscheduledPod("p"), "a", "metadata", "labels", GroupLabel)), history.Workload{Kind: "Pod", Group: "a", Controller: "u"}},
		"a pod of a template":       {with(fixtures.UnscheduledPod("p"), "7", "metadata", "annotations", TemplateAnnotation), history.Workload{Kind: "Pod", Template: "7"}},
		"a pod that somebody wrote": {with(fixtures.UnscheduledPod("p"), "7", "metadata", "annotations", ValueAnnotation), history.Workload{Kind: "Pod"}},
		"a pod on a node":           {with(fixtures.UnscheduledPod("p"), "n", "spec", "nodeName"), history.Workload{Kind: "Pod", Node: "n"}},
		"a ready pod":               {with(fixtures.UnscheduledPod("p"), ready, "status", "conditions"), history.Workload{Kind: "Pod", Ready: true}},
		"a failed pod":              {with(fixtures.UnscheduledPod("p"), "Failed", "status", "phase"), history.Workload{Kind: "Pod", Finished: true, Failed: true}},
		"a succeeded pod":           {with(fixtures.UnscheduledPod("p"), "Succeeded", "status", "phase"), history.Workload{Kind: "Pod", Finished: true}},
		"a Service":                 {fixtures.ServiceFor("s", GroupLabel, "a"), history.Workload{Kind: "Service", Group: "a"}},
		"a budget": {with(with(fixtures.PodDisruptionBudgetOf(2, "b", GroupLabel, "a"), int64(1), "status", "disruptionsAllowed"), map[string]any{"q": "t", "p": "t"}, "status", "disruptedPods"),
			history.Workload{Kind: "PodDisruptionBudget", Group: "a", Replicas: 2, Allowed: 1, Disrupted: "p,q"}},
		"a namespace":                    {fixtures.Namespace("n"), history.Workload{Kind: "Namespace"}},
		"a claim":                        {with(fixtures.PersistentVolumeClaim("c"), "a", "metadata", "labels", GroupLabel), history.Workload{Kind: "PersistentVolumeClaim", Group: "a"}},
		"ready pods of a slice":          {with(with(fixtures.EndpointSlice(), endpoints, "endpoints"), "s", "metadata", "labels", "kubernetes.io/service-name"), history.Workload{Kind: "EndpointSlice", Group: "s", Endpoints: "p"}},
		"an owner that is no controller": {with(fixtures.UnscheduledPod("p"), []any{map[string]any{"kind": "Pod", "name": "o", "uid": "o"}}, "metadata", "ownerReferences"), history.Workload{Kind: "Pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Unix(1000, 0)
			event := WorkloadEvent(began, journal.Event{At: began.Add(time.Minute), Type: watch.Modified, Object: test.object})
			NewWithT(t).Expect(*event.Workload).To(Equal(test.known))
			NewWithT(t).Expect(event.Name).To(Equal(test.known.Kind + "/" + test.object.GetName()))
			NewWithT(t).Expect(event.At).To(Equal(time.Minute))
		})
	}
}
