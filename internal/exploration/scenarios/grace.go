package scenarios

import (
	"context"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Grace is about the graceful deletion of pods that no kubelet runs.
var Grace = &exploration.Scenario{
	Name: "grace", Topic: "pods without a kubelet", Properties: history.GraceProperties,
	Help: "Scenarios grace and nodes delete\npods with random grace periods: pods that no kubelet runs, and pods that run on nodes.",
	Pods: true, Objects: 3, Operations: 40, Draw: chosen(ofPods), Act: actOnGhosts,
}

// ofPods are the choices for pods. Every delete requires a uid, so that it is known what was requested for each pod.
var ofPods = []generate.Choice{
	{Weight: 30, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change, i.Unscheduled = model.Create, model.Change{Value: d.Value()}, d.OneIn(5)
		i.Grace = generate.One(d, nil, new(int64(0)), new(int64(5)), new(int64(60)))
		hold(d, i, 4)
	}},
	{Weight: 50, Draw: func(d *drawer, i *intent) {
		i.Verb, i.UID = model.Delete, true
		i.Grace = generate.One(d, nil, nil, new(int64(-1)), new(int64(0)), new(int64(1)), new(int64(20)), new(int64(40)), new(int64(90)))
	}},
	{Weight: 12, Draw: release},
	{Weight: 8, Draw: get},
}

// actOnGhosts carries out an intent. Pods are bound to a node that does not exist, unless they are to have none. A node's name is used once, as the
// pod garbage collector remembers missing nodes by name.
func actOnGhosts(ctx context.Context, a *clients.Actor, i intent) error {
	request := a.Prepare(i)
	if i.Verb == model.Create {
		if !i.Unscheduled {
			specOf(request.Object)["nodeName"] = fixtures.GhostNode()
		}
		terminateWithin(request.Object, i.Grace)
	}
	return a.Send(ctx, request)
}

// terminateWithin sets the terminationGracePeriodSeconds of a pod, unless that is nil.
func terminateWithin(pod *client.Object, seconds *int64) {
	if seconds != nil {
		specOf(pod)["terminationGracePeriodSeconds"] = *seconds
	}
}

func specOf(pod *client.Object) map[string]any { return pod.Object["spec"].(map[string]any) }
