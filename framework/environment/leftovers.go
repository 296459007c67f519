package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// Leftover is what an earlier run left on a cluster, or what an active run has there.
type Leftover struct {
	// Run is the run's id.
	Run string
	// AliveUntil is until when the run's lease is valid; zero when it has expired.
	AliveUntil time.Time
	namespaces []*client.Object
	// controller is the controller that its specs may have stopped.
	controller session.Controller
	// shared is the namespace that the run was given; empty for its own namespaces.
	shared string
}

// Leftovers finds the runs with objects on a cluster, by the label of their namespaces. It fails with ErrUnreachable, or when the
// credentials may not list namespaces.
func Leftovers(ctx context.Context, config *rest.Config) ([]Leftover, error) {
	connected, err := reach(ctx, config)
	if err != nil {
		return nil, err
	}
	namespaces, response := connected.List(ctx, client.Namespaces, client.RunLabel)
	if apierrors.IsForbidden(response.Err) {
		return nil, fmt.Errorf("list the namespaces of runs: %w; %s", response.Err, namespaceRemedy)
	}
	if response.Err != nil {
		return nil, fmt.Errorf("list the namespaces of runs: %w", response.Err)
	}
	var leftovers []Leftover
	now := time.Now()
	if len(namespaces) > 0 {
		now = now.Add(skewOf(ctx, connected, metav1.NamespaceDefault))
	}
	for _, namespace := range namespaces {
		run := namespace.GetLabels()[client.RunLabel]
		at := slices.IndexFunc(leftovers, func(leftover Leftover) bool { return leftover.Run == run })
		if at < 0 {
			at, leftovers = len(leftovers), append(leftovers, Leftover{Run: run})
		}
		leftovers[at].namespaces = append(leftovers[at].namespaces, namespace)
		leftovers[at].readLease(ctx, connected, namespace, now)
	}
	return leftovers, nil
}

// Force also removes finalizers of other controllers instead of waiting for them.
type Force bool

// Remove removes a run's objects as the run would. A timeout of 0 is the default timeout.
func (l Leftover) Remove(ctx context.Context, config *rest.Config, timeout time.Duration, force Force) error {
	options := Options{Run: l.Run, SharedNamespace: l.shared, CleanupTimeout: timeout, ForceFinalizers: bool(force)}
	options.Controller = l.controller
	connected, err := client.New(config, options.guard())
	if err != nil {
		return err
	}
	environment := Environment{options: options, client: connected, namespaces: l.namespaces}
	return environment.End(ctx)
}

// readLease reads the lease in a run's namespace, given the server's time. A run that has just created the namespace may not have a lease
// yet.
func (l *Leftover) readLease(ctx context.Context, with *client.Client, namespace *client.Object, now time.Time) {
	lease := &client.Object{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	lease.SetNamespace(namespace.GetName())
	lease.SetName(leaseName)
	if response := with.Get(ctx, lease); response.Err == nil {
		l.note(response.Object, now)
	} else if until, alive := young(namespace, now); alive {
		l.AliveUntil = until
	}
}

// note reads the annotations and the time of a lease.
func (l *Leftover) note(lease *client.Object, now time.Time) {
	l.controller = controllerOf(lease)
	if until, alive := fresh(lease, now); alive {
		l.AliveUntil = until
	}
}
