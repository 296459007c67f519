package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// clearClusterScoped removes the run's objects of every cluster-scoped kind except namespaces, which take longer, and returns the
// collections that contained any. Objects that the credentials may not list, they could not create.
func (t *teardown) clearClusterScoped(ctx context.Context) ([]client.Collection, []error) {
	collections, err := removable(t.client, "")
	if err != nil {
		return nil, []error{fmt.Errorf("delete the cluster-scoped objects of run %s: %w", t.run, err)}
	}
	collections = slices.DeleteFunc(collections, func(one client.Collection) bool { return one.Resource == client.Namespaces.Resource })
	held, _, failures := t.clear(ctx, collections, t.removal)
	if ctx.Err() != nil {
		failures = append(failures, fmt.Errorf("delete the cluster-scoped objects of run %s: %w", t.run, ctx.Err()))
	}
	return held, failures
}

// awaitClusterScoped waits until collections of cluster-scoped objects contain no object of the run.
func (t *teardown) awaitClusterScoped(ctx, waiting context.Context, collections []client.Collection) error {
	var left []*client.Object
	swept := time.Now()
	look := func(ctx context.Context) (bool, error) {
		if time.Since(swept) > sweeping {
			t.releaseCustomResources(ctx)
			swept = time.Now()
		}
		left = nil
		for _, collection := range collections {
			objects, _ := t.own(ctx, collection)
			left = append(left, objects...)
		}
		return len(left) == 0, nil
	}
	if err := wait.PollUntilContextCancel(waiting, teardownPolling, true, look); err == nil {
		return nil
	}
	looking, cancel := context.WithDeadline(ctx, t.lookEnd)
	defer cancel()
	if gone, _ := look(looking); gone {
		return nil
	}
	return errors.New("cluster-scoped objects still exist:" + listed(left))
}

// releaseCustomResources removes the run's custom resources of the run's definitions in all namespaces. After a start of the API server,
// discovery does not show them for some time, so that neither teardown nor the namespace controller may have found them. It also writes the
// definitions, because the API server then tries again at once to delete one whose objects it could not list; otherwise it waits longer after
// each attempt.
func (t *teardown) releaseCustomResources(ctx context.Context) {
	definitions, _ := t.own(ctx, client.Definitions)
	for _, definition := range definitions {
		t.client.RemoveDefined(ctx, definition, metav1.NamespaceAll, client.RunLabel+"="+t.run, t.removal) // what remains is listed at the end
		t.client.Patch(ctx, definition, types.MergePatchType, map[string]any{"metadata": map[string]any{
			"uid": definition.GetUID(), "annotations": map[string]any{client.Domain + "/awaited": time.Now().UTC().Format(time.RFC3339Nano)},
		}}, "")
	}
}
