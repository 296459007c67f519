package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

const (
	// DefaultCleanupTimeout is how long teardown waits until everything is gone. The namespace controller starts after 5 s.
	DefaultCleanupTimeout = 90 * time.Second
	// teardownPolling is the interval for reading a namespace; watching requires an additional permission.
	teardownPolling = 200 * time.Millisecond
	// sweeping is the interval for checking for pods whose grace period is over, and for work that a controller has not done.
	sweeping = 5 * time.Second
	// forcing is how long before the end of the wait the remaining pods are deleted immediately.
	forcing = 20 * time.Second
	// lookingBack limits the time for finding out what is left after the timeout. It is a third of the timeout where that is shorter, but
	// not less than minimalLook.
	lookingBack, minimalLook = 30 * time.Second, 2 * time.Second
)

// cleanup is what a run created on a cluster, and how it is removed.
type cleanup struct {
	client *client.Client
	run    string
	// shared is the namespace that the run was given, and namespaces are those that it created for its workers.
	shared     string
	namespaces []*client.Object
	// settings contain the slowness of the cluster, and the controller that specs may have stopped.
	settings session.Settings
	// timeout is how long to wait until everything is gone; 0 for DefaultCleanupTimeout, multiplied by the slowness of the cluster.
	timeout time.Duration
	// removal contains the controllers of Kubernetes that do not run, and whether to remove finalizers of other controllers.
	removal client.Removal
	// workers is the number of namespaces that are removed in parallel.
	workers int
	// interrupted is set when an interruption stopped the probes.
	interrupted bool
	// kept are the objects of the run that stay; nil for none.
	kept *kept
	// slow is why namespaces are deleted slowly; empty when nothing is known.
	slow string
}

// teardown is an attempt at a cleanup.
type teardown struct {
	cleanup
	// began is when it started, end when it gives up, and lookEnd when it no longer looks for what is left.
	began, end, lookEnd time.Time
	// unattended is the time after which a controller that has not acted counts as missing.
	unattended time.Time
}

func (c cleanup) start(now time.Time) *teardown {
	patience := c.timeout
	if patience == 0 {
		patience = c.settings.Slowed(DefaultCleanupTimeout)
	}
	t := &teardown{cleanup: c, began: now, end: now.Add(patience), unattended: now.Add(c.unattendedAfter())}
	t.lookEnd = t.end.Add(min(lookingBack, max(patience/3, minimalLook)))
	t.workers, t.removal.Overdue = max(c.workers, 1), t.isOverdue
	if c.kept != nil {
		t.removal.Except = c.kept.has
	}
	return t
}

const (
	// unattendedTime is how long a namespace may be terminating without a condition before its controller counts as missing: the namespace
	// controller starts after 5 s, and sets its conditions at once.
	unattendedTime = 8 * time.Second
	// busyTime is the same on a cluster where some controllers are known to work, because all are slower on a busy cluster. If a controller
	// is mistaken for missing, objects that the run cannot list may remain in storage after the namespace is gone.
	busyTime = 30 * time.Second
)

// unattendedAfter returns one of these, multiplied by the slowness of the cluster, or 0 when setup found no controllers.
func (c cleanup) unattendedAfter() time.Duration {
	switch {
	case c.interrupted:
		return c.settings.Slowed(unattendedTime)
	case slices.Contains(c.removal.Absent, v1alpha1.GC) && slices.Contains(c.removal.Absent, v1alpha1.KCM):
		return 0
	}
	return c.settings.Slowed(busyTime)
}

// own returns the objects in a collection that the run created and that do not stay, whatever the labels of others are.
func (t *teardown) own(ctx context.Context, collection client.Collection) ([]*client.Object, client.Response) {
	objects, response := t.client.List(ctx, collection, client.RunLabel+"="+t.run)
	return slices.DeleteFunc(objects, func(object *client.Object) bool { return !t.client.Owns(collection, object) || t.kept.has(object) }), response
}

// clear removes the run's objects in some collections until the context ends. It returns the objects and collections that it found.
func (t *teardown) clear(ctx context.Context, in []client.Collection, removal client.Removal) (held []client.Collection, left []*client.Object, failures []error) {
	for _, collection := range in {
		if ctx.Err() != nil {
			break
		}
		found, response := t.client.RemoveEach(ctx, collection, client.RunLabel+"="+t.run, removal)
		if len(found) > 0 {
			held, left = append(held, collection), append(left, found...)
		}
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("delete the %s of run %s: %w", collection.Resource.Resource, t.run, response.Err))
		}
	}
	return held, left, failures
}

// withoutGarbageCollector returns how the run removes its objects when no garbage collector has acted in time.
func (t *teardown) withoutGarbageCollector() client.Removal {
	removal := t.removal
	removal.Absent = append(slices.Clone(removal.Absent), v1alpha1.GC)
	return removal
}

// isOverdue reports whether the grace period of a pod, counted from the start of the teardown at the latest, is over, or hardly any time is
// left.
func (t *teardown) isOverdue(pod *client.Object) bool {
	grace := pod.GetDeletionGracePeriodSeconds()
	if grace == nil {
		return false
	}
	own := t.began.Add(time.Duration(*grace)*time.Second + t.settings.Slowed(killing))
	return time.Now().After(own) || time.Until(t.end) < forcing
}

// killing limits how long a node may take to stop a pod whose grace period is over.
const killing = 10 * time.Second
