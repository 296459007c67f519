package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// probeTime limits how long a controller may take to react to a probe before it counts as missing. A working collector needs about 50 ms.
const probeTime = 10 * time.Second

// probeBusyTime is the same for a garbage collector where other built-in controllers act: it is late rather than missing.
const probeBusyTime = 2 * time.Minute

// probeGarbageCollector looks for any sign of a garbage collector: it deletes a dependent after its owner, it releases an owner that waits
// in the foreground, or it releases an owner that waits to be orphaned. One sign is enough; the behaviors test the rest.
func probeGarbageCollector(ctx context.Context, t Target) error {
	watches := journal.NewWatches(t.Client, t.Labels().String())
	defer watches.Stop()
	signs, err := startCollection(ctx, t, watches)
	if err != nil {
		return fmt.Errorf("the garbage collector could not be probed: %w", err)
	}
	held := map[types.UID]string{}
	ended := func(event journal.Event) bool {
		ours := signs.Has(event.Object.GetUID())
		if ours {
			held[event.Object.GetUID()] = client.ForeignHold(event.Object, event.Object.GetFinalizers())
		}
		return event.Type == watch.Deleted && ours
	}
	answered := func(context.Context) (bool, error) {
		events, err := watches.Journal.Read(ended)
		return len(events) > 0, err
	}
	holding := func() string { return slices.Max(append(slices.Collect(maps.Values(held)), "")) }
	patience := t.Slowed(probeTime)
	err = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, answered)
	if wait.Interrupted(err) && t.WaitTimeout == 0 && holding() == "" && probeControllers(ctx, t) == nil {
		patience = t.Slowed(probeBusyTime)
		err = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, answered)
	}
	if wait.Interrupted(err) {
		reason := fmt.Sprintf("the garbage collector did not act within %s", patience)
		if hold := holding(); hold != "" {
			reason += ": " + hold
		}
		return skipReason{text: reason}
	}
	return err
}

// startCollection gives a collector three tasks. It returns the uids of the objects whose deletion shows that one was done.
func startCollection(ctx context.Context, t Target, watches *journal.Watches) (sets.Set[types.UID], error) {
	signs := sets.Set[types.UID]{}
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		owner, err := createProbe(ctx, t, watches, strings.ToLower(string(policy)))
		if err != nil {
			return nil, err
		}
		sign := owner
		if policy == metav1.DeletePropagationBackground {
			reference := *metav1.NewControllerRef(owner, owner.GroupVersionKind())
			reference.BlockOwnerDeletion = nil // it requires a permission that namespace admins do not have
			if sign, err = createProbe(ctx, t, watches, "dependent", reference); err != nil {
				return nil, err
			}
		}
		if response := t.Client.Delete(ctx, owner, metav1.DeleteOptions{PropagationPolicy: &policy}); response.Err != nil {
			return nil, response.Err
		}
		signs.Insert(sign.GetUID())
	}
	return signs, nil
}

// createProbe creates an object that is watched before it exists.
func createProbe(ctx context.Context, t Target, watches *journal.Watches, name string, owners ...metav1.OwnerReference) (*client.Object, error) {
	object := t.Client.StandInFor(fixtures.ConfigMap(t.Run + "-probe-" + name + "-" + rand.String(6)))
	object.SetNamespace(t.Namespace)
	object.SetLabels(t.Labels())
	object.SetOwnerReferences(owners)
	return createWatched(ctx, t.Client, watches, object)
}

// createWatched starts to watch the collection of an object, and creates the object.
func createWatched(ctx context.Context, with *client.Client, watches *journal.Watches, object *client.Object) (*client.Object, error) {
	collection, err := with.CollectionOf(object)
	if err != nil {
		return nil, err
	}
	if response := watches.Cover(ctx, collection); response.Err != nil {
		return nil, response.Err
	}
	response := with.Create(ctx, object)
	return response.Object, response.Err
}

// probeControllers looks for the built-in controllers by the default service account that one of them creates in every namespace.
func probeControllers(ctx context.Context, t Target) error {
	account := fixtures.ServiceAccount()
	account.SetNamespace(t.Namespace)
	account.SetName("default")
	if err := t.served(account.GroupVersionKind()); err != nil {
		return err
	}
	var response client.Response
	patience := t.Slowed(probeTime)
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		response = t.Client.Get(ctx, account) // with its own timeout: an interrupted request proves nothing
		return response.Err == nil || apierrors.IsForbidden(response.Err), nil
	})
	switch {
	case err != nil && !response.Authoritative():
		return fmt.Errorf("the built-in controllers could not be probed: %w", response.Err)
	case err != nil:
		return skipReason{text: fmt.Sprintf("the built-in controllers did not act within %s (no default ServiceAccount in the namespace)", patience)}
	case response.Err != nil:
		return fmt.Errorf("the built-in controllers could not be probed: %w", response.Err)
	}
	return nil
}

// probeController checks whether the controller of the resource under test runs.
func probeController(ctx context.Context, t Target) error {
	if !t.Controller.IsNamed() {
		return skipReason{text: "no controller was named: set --controller, with --resource"}
	}
	if !t.Leased {
		return skipReason{text: "the run could not create a Lease, which `runner cleanup` needs to start a stopped controller again"}
	}
	if !t.Controller.IsDeployment() {
		return nil // it runs as long as the run does
	}
	response := t.Client.Get(ctx, t.Controller.Object())
	if response.Err != nil {
		return fmt.Errorf("read %s: %w", t.Controller, response.Err)
	}
	if err := controller.AtWork(response.Object); err != nil {
		return skipReason{text: err.Error()}
	}
	return nil
}
