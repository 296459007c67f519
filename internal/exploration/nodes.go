package exploration

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

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

// shutDown releases and deletes the round's pods, and waits until their kubelets have removed them. It returns when it waited, and what the
// watches have delivered before that.
func (a *actor) shutDown(ctx context.Context) (*history.Wait, []history.Stream, error) {
	if err := a.release(ctx); err != nil {
		return nil, nil, err
	}
	deletion := func(pod int) generate.Intent {
		return generate.Intent{Verb: model.Delete, Object: pod, UID: true, Grace: new(int64(1 + (a.round.number+pod)%lastGraces))}
	}
	if err := a.repeat(ctx, deletion, func(pod model.Object) bool { return pod.UID != "" && !pod.Terminating }); err != nil {
		return nil, nil, err
	}
	_, streams, err := a.cut(ctx)
	if err != nil {
		return nil, nil, err
	}
	wait := &history.Wait{From: time.Since(a.round.began)}
	watch := a.watchers[0]
	watch.Await(ctx, a.settings.AtLeast(removalTime), func() bool {
		return !slices.ContainsFunc(a.round.names, func(name string) bool { return watch.Live[name].UID != "" })
	})
	wait.To = time.Since(a.round.began)
	return wait, streams, ctx.Err()
}
