package scenarios

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
)

// Grace is about the graceful deletion of pods that no kubelet runs.
var Grace = &exploration.Scenario{
	Name: "grace", Topic: "(pods without a kubelet)", Properties: checks.Grace,
	Help: "Scenarios grace and nodes delete\npods with random grace periods: pods that no kubelet runs, and pods that run on nodes.",
	Pods: true, About: "pods", Objects: 3, Operations: 40, Draw: chosen(ofPods), Act: actOnPods(false),
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

// actOnPods carries out an intent. Unless nodes run them, pods are bound to one that does not exist, or have none. A node's name is used once, as
// the pod garbage collector remembers missing nodes by name.
func actOnPods(nodes bool) func(context.Context, *clients.Actor, intent) error {
	return func(ctx context.Context, a *clients.Actor, i intent) error {
		request := a.Prepare(i)
		if i.Verb == model.Create {
			spec := request.Object.Object["spec"].(map[string]any)
			if !nodes && !i.Unscheduled {
				spec["nodeName"] = fixtures.GhostNode()
			}
			if i.Grace != nil {
				spec["terminationGracePeriodSeconds"] = *i.Grace
			}
		}
		return a.Send(ctx, request)
	}
}

// Nodes is about the graceful deletion of pods that a kubelet runs. They have more time and fewer clients' operations than others, so that containers
// start between these.
var Nodes = &exploration.Scenario{
	Name: "nodes", Topic: "(pods with one)", Properties: checks.Nodes,
	Features: []v1alpha1.Feature{v1alpha1.Node}, Pods: true, About: "pods", Objects: 6, Operations: 8,
	Draw: drawWithPause, Begin: useNodePods, Act: actOnPods(true), Settle: shutDown,
}

// onNodes are the choices for pods that a kubelet runs. Their clients pause between operations, so that containers start and end meanwhile.
var onNodes = []generate.Choice{
	{Weight: 34, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change, i.Grace = model.Create, model.Change{Value: d.Value()}, generate.One(d, new(int64(1)), new(int64(4)), new(int64(12)))
		hold(d, i, 4)
	}},
	{Weight: 36, Draw: func(d *drawer, i *intent) {
		i.Verb, i.UID = model.Delete, true
		i.Grace = generate.One(d, nil, nil, new(int64(-1)), new(int64(0)), new(int64(1)), new(int64(3)), new(int64(6)), new(int64(15)))
	}},
	{Weight: 14, Draw: release},
	{Weight: 16, Draw: get},
}

// longestPause limits the pauses between operations on pods that a kubelet runs.
const longestPause = 3 * time.Second

func drawWithPause(d *drawer, _ generate.Program) intent {
	drawn := d.Choose(onNodes)
	drawn.Pause = time.Duration(d.Int64N(int64(longestPause/time.Millisecond))) * time.Millisecond
	return drawn
}

// useNodePods makes the objects of a round pods that nodes run. The one that is written between rounds is not.
func useNodePods(_ context.Context, d *exploration.Driver) (err error) {
	d.Current.Manifest, err = d.Completed(nodePod(d.Settings.ImageRegistry))
	return err
}

// nodePod is a pod with one container, which ignores SIGTERM. It has no probe: a runtime that is running one in a container can miss the
// container's end (containerd/containerd#10603).
func nodePod(registry string) *client.Object {
	pod := fixtures.NodePod("explored", fixtures.Container{Name: "main", Image: fixtures.WithRegistry(fixtures.BusyboxImage, registry)})
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	delete(containers[0].(map[string]any), "startupProbe")
	_ = unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers")
	return pod
}

const (
	// lastGraces is the longest grace period of the last deletes of a round, in seconds. They use each from 1 s on, in turn.
	lastGraces = 6
	// removalTime is how long kubelets may take to remove pods after these deletes, on a fast cluster.
	removalTime = time.Minute
)

// shutDown releases and deletes the round's pods, and waits until their kubelets have removed them. It adds when it waited, and what the
// watches have delivered before that.
func shutDown(ctx context.Context, d *exploration.Driver, whole *history.History) (err error) {
	if err := d.Release(ctx); err != nil {
		return err
	}
	deletion := func(pod int) intent {
		return intent{Verb: model.Delete, Object: pod, UID: true, Grace: new(int64(1 + (d.Current.Number+pod)%lastGraces))}
	}
	if err := d.Repeat(ctx, deletion, func(pod model.Object) bool { return pod.UID != "" && !pod.Terminating }); err != nil {
		return err
	}
	if _, whole.Streams, err = d.Cut(ctx); err != nil {
		return err
	}
	whole.Wait = &history.Wait{From: time.Since(d.Current.Began)}
	watch := d.Watchers[0]
	watch.Await(ctx, d.Settings.AtLeast(removalTime), func() bool {
		return !slices.ContainsFunc(d.Current.Names, func(name string) bool { return watch.Live[name].UID != "" })
	})
	whole.Wait.To = time.Since(d.Current.Began)
	return ctx.Err()
}
