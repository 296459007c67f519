package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// Leftover is what an earlier run left on a cluster, or what a run that is still alive has there.
type Leftover struct {
	// Run is the run's id.
	Run string
	// AliveUntil is until when the run's lease is good; zero when it is not any more.
	AliveUntil time.Time
	namespaces []*client.Object
	// controller is what its specs may have stopped.
	controller session.Controller
	// shared is the namespace that the run was told to stay in; empty for namespaces of its own.
	shared string
}

// Leftovers finds the runs that have something on a cluster, by the label of their namespaces. It fails with
// ErrUnreachable, or when the credentials do not allow to list namespaces.
func Leftovers(ctx context.Context, config *rest.Config) ([]Leftover, error) {
	connected, err := client.New(config, client.NewGuard(""))
	if err != nil {
		return nil, err
	}
	if _, err := serverVersion(ctx, connected); err != nil {
		return nil, unreachable(config, err)
	}
	namespaces, response := connected.List(ctx, client.Namespaces, client.RunLabel)
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

// Force says that finalizers of other controllers are removed, too, and not waited for.
type Force bool

// Remove removes what a run left, as the run itself would have. It waits as long as is given, or as a run would where that is 0.
func (l Leftover) Remove(ctx context.Context, config *rest.Config, timeout time.Duration, force Force) error {
	options := Options{Run: l.Run, SharedNamespace: l.shared, CleanupTimeout: timeout, ForceFinalizers: bool(force)}
	options.Controller = l.controller
	connected, err := client.New(config, options.guard(l.namespaces...))
	if err != nil {
		return err
	}
	environment := Environment{options: options, client: connected, namespaces: l.namespaces}
	return environment.End(ctx)
}

// readLease reads the lease in a run's namespace, by a moment of the server's clock. A run that has only just made the namespace may have had no time to
// make a lease.
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

// note takes over what a run's lease says.
func (l *Leftover) note(lease *client.Object, now time.Time) {
	l.controller = controllerOf(lease)
	if until, alive := fresh(lease, now); alive {
		l.AliveUntil = until
	}
}
