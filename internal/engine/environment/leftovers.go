package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// What a cluster reports about its objects is input: other users may copy the labels of a run. Labels are how leftovers are searched for, except
// Events, which have none, and names are what proves that a run created them (see client.NamedBy).

// Leftover is what one run left on a cluster, or what an active run has there.
type Leftover struct {
	// Run is the run's id.
	Run string
	// AliveUntil is until when the run's lease is valid; zero when it has expired.
	AliveUntil time.Time
	// Unsure is why it is not known whether the run is active; nil when it is known.
	Unsure error
	// Controller is the Deployment that the run may have stopped, as the lease names it; empty for none. It is a hint to the user: Remove
	// starts only a controller that its options name.
	Controller session.Controller
	// Objects describe the objects that Remove deletes, one each.
	Objects []string
	// Kept reports that the run kept its Namespaces with the objects of failed behaviors.
	Kept       bool
	Namespaces []string

	namespaces []*client.Object
	// shared is the namespace that the run was given; empty for its own namespaces.
	shared string
}

// Found is the result of a search for leftovers.
type Found struct {
	Leftovers []Leftover
	// Foreign describe objects that carry the label of a run but were not created by one. They stay.
	Foreign []string
	// Unread are what could not be listed, with the reason. Objects of runs may remain there.
	Unread []string
	// Failed are the errors among these other than missing permissions and APIs that do not respond; nil for none.
	Failed error
}

// FindLeftovers finds the runs with objects on a cluster or, if a namespace is given, those that were restricted to it with --namespace. It
// fails with ErrUnreachable, with ErrNoNamespace, or when the credentials may not list namespaces.
func FindLeftovers(ctx context.Context, config *rest.Config, namespace string) (*Found, error) {
	connected, err := reach(ctx, config)
	if err != nil {
		return nil, err
	}
	clock := cmp.Or(namespace, metav1.NamespaceDefault)
	if namespace != "" {
		if err := findNamespace(ctx, connected, namespace); err != nil {
			return nil, err
		}
	} else if _, response := connected.List(ctx, client.Namespaces, client.RunLabel); apierrors.IsForbidden(response.Err) {
		return nil, fmt.Errorf("list the namespaces of runs: %w; %s", response.Err, namespaceRemedy)
	} else if response.Err != nil {
		return nil, fmt.Errorf("list the namespaces of runs: %w", response.Err)
	}
	search := &search{Found: &Found{}, with: connected, shared: namespace}
	undiscovered, err := connected.DiscoveryFailures()
	if err != nil {
		return nil, err
	}
	search.Unread = undiscovered
	if err := search.list(ctx, namespace, client.RunLabel, search.sort); err != nil {
		return nil, err
	}
	if namespace == "" {
		search.listEvents(ctx)
	}
	if len(search.Leftovers) == 0 {
		return search.Found, nil
	}
	now := time.Now().Add(preflight.Skew(ctx, connected, clock))
	for i := range search.Leftovers {
		err = errors.Join(err, search.complete(ctx, &search.Leftovers[i], now))
	}
	return search.Found, err
}

// eventResources describe other objects, and are removed with them.
var eventResources = []schema.GroupResource{corev1.Resource("events"), {Group: eventsv1.GroupName, Resource: "events"}}

// search collects what is found.
type search struct {
	*Found
	with   *client.Client
	shared string
}

// list calls a function with each selected object of a namespace or, if it is empty, each cluster-scoped one. Kinds that cannot be listed are
// noted.
func (s *search) list(ctx context.Context, namespace, selector string, do func(client.Collection, *client.Object)) error {
	collections, err := removable(s.with, namespace)
	if err != nil {
		return fmt.Errorf("discover the resources that runs may have left: %w", err)
	}
	for _, collection := range collections {
		if slices.Contains(eventResources, collection.Resource.GroupResource()) {
			continue // they are deleted with what they are about
		}
		objects, response := s.with.List(ctx, collection, selector)
		s.note(response.Err)
		for _, object := range objects {
			do(collection, object)
		}
	}
	return nil
}

// note records that something could not be listed, unless it is not served.
func (s *search) note(err error) {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return
	}
	s.Unread = append(s.Unread, err.Error())
	if !apierrors.IsForbidden(err) {
		s.Failed = errors.Join(s.Failed, err)
	}
}

// listEvents adds Events about cluster-scoped objects to the leftovers of the runs that their names contain.
func (s *search) listEvents(ctx context.Context) {
	_, pages := eventsOf(ctx, s.with, "")
	for events, response := range pages {
		s.note(response.Err)
		for _, event := range events {
			if run := client.RunNamedIn(event.GetName()); run != "" {
				s.leftoverOf(run).add(event)
			}
		}
	}
}

// sort adds a labelled object to the leftover of its run, or to the foreign ones.
func (s *search) sort(collection client.Collection, object *client.Object) {
	run := object.GetLabels()[client.RunLabel]
	if own := client.BelongsTo(run, collection, object) || s.shared != "" && hasHarnessName(run, object); !own {
		s.Foreign = append(s.Foreign, fmt.Sprintf("%s (label of run %s)", describe.Name(object), run))
		return
	}
	s.leftoverOf(run).add(object)
}

// leftoverOf returns the leftover of a run, which may be new.
func (s *search) leftoverOf(run string) *Leftover {
	at := slices.IndexFunc(s.Leftovers, func(leftover Leftover) bool { return leftover.Run == run })
	if at < 0 {
		at, s.Leftovers = len(s.Leftovers), append(s.Leftovers, Leftover{Run: run, shared: s.shared})
	}
	return &s.Leftovers[at]
}

func (l *Leftover) add(object *client.Object) {
	l.Objects = append(l.Objects, describe.Name(object))
	if object.GetKind() == "Namespace" {
		l.namespaces, l.Namespaces = append(l.namespaces, object), append(l.Namespaces, object.GetName())
	}
}

// complete adds the content of a run's namespaces, and reads its lease.
func (s *search) complete(ctx context.Context, leftover *Leftover, now time.Time) error {
	if s.shared != "" {
		s.readLease(ctx, leftover, fixtures.Namespace(s.shared), now)
	}
	for _, namespace := range leftover.namespaces {
		s.readLease(ctx, leftover, namespace, now)
		add := func(_ client.Collection, object *client.Object) {
			leftover.Objects = append(leftover.Objects, describe.Name(object))
			leftover.Kept = leftover.Kept || object.GetKind() == "ConfigMap" && object.GetName() == keptName
		}
		if err := s.list(ctx, namespace.GetName(), "", add); err != nil {
			return err
		}
	}
	return nil
}

// readLease reads the lease in a run's namespace, given the server's time. A run that has just created the namespace may not have a lease yet.
func (s *search) readLease(ctx context.Context, leftover *Leftover, namespace *client.Object, now time.Time) {
	lease := &client.Object{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	lease.SetNamespace(namespace.GetName())
	lease.SetName(leaseName)
	read := s.with.Get(ctx, lease)
	until, alive := time.Time{}, false
	switch {
	case read.Err == nil && holderOf(read.Object) == leftover.Run:
		leftover.Controller = controllerOf(read.Object)
		until, alive = fresh(read.Object, now)
	case read.Err != nil && !apierrors.IsNotFound(read.Err) && !meta.IsNoMatchError(read.Err):
		leftover.Unsure = read.Err
	default:
		until, alive = young(namespace, now)
	}
	if alive && until.After(leftover.AliveUntil) {
		leftover.AliveUntil = until
	}
}

// hasHarnessName reports whether an object in a shared namespace is the lease or the ServiceAccount of a run. Their names are those of the
// harness, so that two runs cannot use the namespace at the same time.
func hasHarnessName(run string, object *client.Object) bool {
	switch object.GetKind() {
	case "Lease":
		return object.GetName() == leaseName && holderOf(object) == run
	case "ServiceAccount":
		return object.GetName() == fixtures.ServiceAccountName
	}
	return false
}

// FindController fails if a controller cannot be read, because Remove can then not start it again.
func FindController(ctx context.Context, config *rest.Config, which session.Controller) error {
	connected, err := reach(ctx, config)
	if err != nil || !which.IsDeployment() {
		return err
	}
	if response := connected.Get(ctx, which.Object()); response.Err != nil {
		return fmt.Errorf("read %s: %w", which, response.Err)
	}
	return nil
}

// Stopped is the leftover of a run of which nothing may be left but the controller that it stopped, on a cluster or in a namespace that it was
// given.
func Stopped(run, namespace string) Leftover { return Leftover{Run: run, shared: namespace} }

// RemoveOptions select how leftovers are removed.
type RemoveOptions struct {
	// Timeout limits the wait until they are gone; 0 for the default.
	Timeout time.Duration
	// ForceFinalizers also removes finalizers of other controllers instead of waiting for them.
	ForceFinalizers bool
	// Controller is started again if the run has stopped it.
	Controller session.Controller
}

// Remove removes a run's objects as the run would.
func (l Leftover) Remove(ctx context.Context, config *rest.Config, options RemoveOptions) error {
	settings := session.Settings{Controller: options.Controller}
	connected, err := client.New(config, guardOf(l.Run, l.shared, settings))
	if err != nil {
		return err
	}
	return cleanup{
		client: connected, run: l.Run, shared: l.shared, namespaces: l.namespaces, settings: settings, timeout: options.Timeout,
		removal: client.Removal{AllFinalizers: options.ForceFinalizers},
	}.remove(ctx)
}
