package environment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// ErrRefused is the error for a cluster that responded but cannot be tested.
var ErrRefused = errors.New("preflight refused")

// Setup connects to a cluster, creates the run's namespaces and probes features. If it fails, it removes what it created. It fails with
// ErrUnreachable or ErrRefused.
func Setup(ctx context.Context, config *rest.Config, options Options) (*Environment, error) {
	guard := guardOf(options.Run, options.SharedNamespace, options.Settings)
	if options.NoCreate {
		guard = client.NewGuard("")
	}
	connected, err := client.New(config, guard)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	e := &Environment{options: options, client: connected.Adding(options.Overlay()), groupDomain: domainOf(options.Run)}
	if e.serverVersion, err = serverVersion(ctx, connected); err != nil {
		return nil, unreachable(config, err)
	}
	if preflight.IsOpenShift(connected) {
		e.options.PodOverlay = withoutUsers(options.PodOverlay)
		e.client = connected.Adding(e.options.Overlay())
	}
	if options.NoCreate {
		return e.dryRunOnly(ctx)
	}
	if err := findController(ctx, e.client, options.Controller); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	e.adapt(ctx)
	if err := e.createNamespaces(ctx); err != nil {
		return nil, e.refused(ctx, err)
	}
	if options.CustomKinds && options.SharedNamespace == "" {
		e.groupDomain = defineCustomKinds(ctx, e.client, options.Run)
	}
	e.options.WebhookHost = preflight.WebhookHost(options.WebhookHost, config.Host)
	if e.found, err = preflight.Run(ctx, e.Target()); err != nil {
		return nil, e.refused(ctx, err)
	}
	return e, ctx.Err()
}

// dryRunOnly sets up a run that sends only dry-runs, in an existing namespace. It probes neither controllers nor permissions.
func (e *Environment) dryRunOnly(ctx context.Context) (*Environment, error) {
	if len(e.options.Prerequisites) > 0 {
		return nil, fmt.Errorf("%w: --no-create rules out to create what must exist before: %s of the fixture", ErrRefused,
			client.Title(e.options.Prerequisites[0]))
	}
	if e.options.SharedNamespace == "" {
		e.options.SharedNamespace = metav1.NamespaceDefault
	}
	if err := findNamespace(ctx, e.client, e.options.SharedNamespace); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	e.options.Unsupported = map[v1alpha1.Feature]string{}
	for _, feature := range v1alpha1.Features {
		e.options.Unsupported[feature] = "not found out: this run creates nothing (--no-create)"
	}
	e.adapt(ctx)
	found, err := preflight.Run(ctx, e.Target())
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	e.found = found
	return e, nil
}

// withoutUsers returns a pod overlay that removes the users and groups of fixtures unless the overlay sets its own, because OpenShift
// assigns a range to each namespace, and its restricted security context constraints refuse others.
func withoutUsers(overlay map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(overlay)
	if merged == nil {
		merged = map[string]any{}
	}
	for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
		path := []string{"spec", "securityContext", field}
		if _, chosen, _ := unstructured.NestedFieldNoCopy(merged, path...); !chosen {
			_ = unstructured.SetNestedField(merged, nil, path...) // whose parents are objects
		}
	}
	return merged
}

// findController fails when the Deployment of the controller of the resource under test does not exist.
func findController(ctx context.Context, with *client.Client, which session.Controller) error {
	if !which.IsDeployment() {
		return nil
	}
	if response := with.Get(ctx, which.Object()); apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("there is no %s: `kubectl get deploy -A` lists the available ones", which)
	}
	return nil // the probe reports other problems
}

// adapt adapts the waits and the number of workers to the speed of the cluster.
func (e *Environment) adapt(ctx context.Context) {
	e.latency = preflight.MeasureLatency(ctx, e.client, max(e.options.Workers, 1))
	e.options.Slowness = e.latency.Slowness()
	if e.options.ExtraWorkers != nil {
		e.extraWorkers = e.options.ExtraWorkers(e.latency.Distance())
	}
}

// refused removes what the run has created on a cluster that it cannot test, and returns the reason.
func (e *Environment) refused(ctx context.Context, reason error) error {
	return errors.Join(fmt.Errorf("%w: %w", ErrRefused, reason), e.Teardown(context.WithoutCancel(ctx)))
}

// createNamespaces creates a namespace for each worker, the objects that pods need in it, and the lease that marks the run as active.
func (e *Environment) createNamespaces(ctx context.Context) error {
	if e.options.SharedNamespace != "" {
		return e.useSharedNamespace(ctx)
	}
	made := make([]*client.Object, e.workers())
	defer func() {
		e.namespaces = slices.DeleteFunc(made, func(namespace *client.Object) bool { return namespace == nil })
	}()
	create := func(worker int) (err error) {
		name := fmt.Sprintf("%s-%d", e.options.Run, worker)
		if made[worker-1], err = createNamespace(ctx, e.client, name, e.labels(worker)); err != nil {
			return err
		}
		return e.furnish(ctx, name, worker)
	}
	if err := create(1); err != nil { // the lease comes first
		return err
	}
	var creating errgroup.Group
	for worker := 2; worker <= len(made); worker++ {
		creating.Go(func() error { return create(worker) })
	}
	return creating.Wait()
}

// useSharedNamespace makes all workers use the existing namespace. The run creates nothing outside it.
func (e *Environment) useSharedNamespace(ctx context.Context) error {
	shared := e.options.SharedNamespace
	if err := mayUse(ctx, e.client, shared); err != nil {
		return err
	}
	unsupported := map[v1alpha1.Feature]string{}
	maps.Copy(unsupported, e.options.Unsupported)
	for feature, resource := range map[v1alpha1.Feature]string{
		v1alpha1.CRD:           "customresourcedefinitions.apiextensions.k8s.io",
		v1alpha1.Admin:         "cluster-scoped objects",
		v1alpha1.Namespace:     "namespaces",
		v1alpha1.Volume:        "persistentvolumes",
		v1alpha1.Class:         "priorityclasses and volumeattributesclasses",
		v1alpha1.SimulatedNode: "nodes",
		v1alpha1.Hook:          "validatingwebhookconfigurations.admissionregistration.k8s.io",
	} {
		unsupported[feature] = session.Config{Namespace: shared}.Outside("create " + resource)
	}
	e.options.Unsupported = unsupported
	return e.furnish(ctx, shared, 1)
}

// furnish creates the objects that pods need in a namespace, and in the first one the lease that marks the run as active.
func (e *Environment) furnish(ctx context.Context, namespace string, worker int) (err error) {
	if worker == 1 {
		e.skew = preflight.Skew(ctx, e.client, namespace)
		if e.lease, err = acquireLease(ctx, e.client, session.Config{Settings: e.options.Settings, Run: e.options.Run, Namespace: namespace}, e.skew); err != nil {
			return err
		}
	}
	account := fixtures.ServiceAccount()
	account.SetNamespace(namespace)
	account.SetLabels(e.labels(worker))
	response := e.client.Create(ctx, account)
	_, refused := response.RefusedByAdmission()
	if response.Err != nil && !refused && !apierrors.IsForbidden(response.Err) && !meta.IsNoMatchError(response.Err) {
		return fmt.Errorf("create service account %q in namespace %q: %w", account.GetName(), namespace, response.Err)
	}
	return e.prepare(ctx, namespace, worker)
}

// prepare creates the prerequisites in order. Existing cluster-scoped objects are used unchanged.
func (e *Environment) prepare(ctx context.Context, namespace string, worker int) error {
	for _, manifest := range e.options.Prerequisites {
		object := manifest.DeepCopy()
		object.SetNamespace(namespace)
		collection, err := e.client.CollectionOf(object)
		if err != nil {
			return fmt.Errorf("create %s of the fixture: %w", client.Title(manifest), err)
		}
		object.SetNamespace(collection.Namespace)
		object.SetLabels(labels.Merge(object.GetLabels(), e.labels(worker)))
		if response := e.client.CreateNamed(ctx, object); response.Err != nil && !apierrors.IsAlreadyExists(response.Err) {
			return fmt.Errorf("create %s of the fixture: %w", client.Title(object), response.Err)
		}
	}
	return nil
}
