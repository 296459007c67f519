// Package environment sets up a cluster for a run and cleans up after it: it checks which features the cluster has, creates namespaces for
// the workers, and removes everything that the run created.
package environment

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// ErrUnreachable is the error for a cluster that did not respond or did not accept the credentials.
var ErrUnreachable = errors.New("cluster unreachable")

// ErrRefused is the error for a cluster that responded but cannot be tested.
var ErrRefused = errors.New("preflight refused")

// Options configure a run on a cluster.
type Options struct {
	session.Settings
	// Run is the run's id; see NewRunID.
	Run string
	// Workers is the number of workers that run specs in parallel; each gets a namespace.
	Workers int
	// ExtraWorkers returns the number of additional workers for a network distance; nil for none. See Latency.Distance.
	ExtraWorkers func(distance time.Duration) int
	// Prerequisites are created in each worker's namespace, or once if they are cluster-scoped, before the specs.
	Prerequisites []*client.Object
	// SharedNamespace is an existing namespace to use; empty for namespaces of the run.
	SharedNamespace string
	// Supported are features that the creator of the cluster guarantees. They are not probed, so that behaviors fail instead of being
	// skipped when a feature is missing.
	Supported []v1alpha1.Feature
	// Unsupported maps features that are known to be missing to the reasons; they are not probed either.
	Unsupported map[v1alpha1.Feature]string
	// CustomKinds is set when specs will use custom kinds. Setup then defines them early, because the garbage collector takes up to 30 s to
	// discover a new kind.
	CustomKinds bool
	// Components is the socket for stopping components of the cluster; empty when that is not possible.
	Components string
	// Behaviors are the behaviors of the run, whose objects setup creates as dry-runs. It does not when a resource under test replaces
	// ConfigMaps.
	Behaviors []v1alpha1.Behavior
	// CleanupTimeout is how long teardown waits until everything is gone; 0 for DefaultCleanupTimeout, multiplied by the slowness of the
	// cluster.
	CleanupTimeout time.Duration
	// ForceFinalizers also removes finalizers of other controllers instead of waiting for them.
	ForceFinalizers bool
}

// guard returns the guard of the run. In the namespace that the user named, it permits the two objects with names of the project.
func (o Options) guard() *client.Guard {
	if o.NoCreate {
		return client.NewGuard("")
	}
	guard := client.NewGuard(o.Run)
	o.Except(guard)
	if o.SharedNamespace != "" {
		guard.Except(client.Collection{Resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Namespace: o.SharedNamespace}, leaseName)
		guard.Except(client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Namespace: o.SharedNamespace},
			fixtures.ServiceAccount().GetName())
	}
	return guard
}

// Environment is the state of a run on a cluster: its namespaces, and what setup found out.
type Environment struct {
	options Options
	client  *client.Client
	lease   *lease
	// namespaces are those of the workers, in order.
	namespaces    []*client.Object
	extraWorkers  int
	groupDomain   string
	serverVersion string
	nodeRuntime   string
	secondNode    string
	unsupported   map[v1alpha1.Feature]string
	// lostGarbageCollector describes the canary that the garbage collector did not delete, for workers that start later.
	lostGarbageCollector atomic.Value
	// latency is the measured speed of the cluster.
	latencyLock sync.Mutex
	latency     Latency
	// mutators are the cluster's mutating admission, and obstacles what admission does to objects of the run.
	mutators  admission.Mutators
	obstacles []obstacle
	// skew is how far the server's clock is ahead of the runner's, and nodeSkews how far those of nodes are ahead of the server's.
	skew      time.Duration
	nodeSkews map[string]time.Duration
	// found are the findings, and nodeProbe a probe that may still be running; nil when there is none.
	found     findings
	nodeProbe *nodeProbe
	// unavailable are the APIs that do not respond, and unreadable the custom resources that cannot be listed. Each is determined when it
	// is first needed.
	unavailable, unreadable func() ([]string, error)
	// unprobed is set when an interruption stopped the probes.
	unprobed bool
}

// NewRunID returns an id for a run: short, unique with high probability, and valid in names and labels.
func NewRunID() string { return "dc" + rand.String(8) }

// idLetters are the letters of ids, without vowels and letters that look alike.
const idLetters = "bcdfghjklmnpqrstvwxz2456789"

// RunIDOf returns the id of a run that is always the same for a seed. Attempts of the same work find by it what earlier ones left.
func RunIDOf(seed string) string {
	id := []byte("dc")
	for _, b := range sha256.Sum256([]byte(seed)) {
		if len(id) == len("dc")+8 {
			break
		}
		id = append(id, idLetters[int(b)%len(idLetters)])
	}
	return string(id)
}

// reachable limits how long a cluster may take to return its version.
const reachable = 10 * time.Second

// Setup connects to a cluster, creates the run's namespaces and probes features. If it fails, it removes what it created. It fails with
// ErrUnreachable or ErrRefused.
func Setup(ctx context.Context, config *rest.Config, options Options) (*Environment, error) {
	connected, err := client.New(config, options.guard())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	environment := &Environment{
		options: options, client: connected.Adding(options.Overlay()), unsupported: map[v1alpha1.Feature]string{}, groupDomain: options.Run + "." + client.Domain,
	}
	maps.Copy(environment.unsupported, options.Unsupported)
	environment.unavailable = sync.OnceValues(func() ([]string, error) { return unavailableAPIs(ctx, environment.client) })
	environment.unreadable = sync.OnceValues(func() ([]string, error) { return environment.unreadableResources(ctx) })
	if environment.serverVersion, err = serverVersion(ctx, connected); err != nil {
		return nil, unreachable(config, err)
	}
	if environment.isOpenShift() {
		environment.options.PodOverlay = withoutUsers(options.PodOverlay)
		environment.client = connected.Adding(environment.options.Overlay())
	}
	if options.NoCreate {
		if err := environment.dryRunOnly(ctx); err != nil {
			return nil, err
		}
		return environment, nil
	}
	if err := environment.findController(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	environment.measureReads(ctx)
	if err := environment.createNamespaces(ctx); err != nil {
		return nil, environment.refused(ctx, err)
	}
	if options.CustomKinds && !environment.inSharedNamespace() {
		environment.defineCustomKinds(ctx)
	}
	environment.options.WebhookHost = webhookHost(options.WebhookHost, config.Host)
	first := environment.Session(1)
	var trying sync.WaitGroup
	var crashed error
	trying.Go(func() { crashed = environment.tryFixtures(ctx) })
	trying.Go(func() { environment.check(ctx) })
	answers, err := environment.probe(ctx, config, first)
	trying.Wait()
	if err = errors.Join(environment.note(answers), err, crashed); err != nil {
		return nil, environment.refused(ctx, err)
	}
	return environment, ctx.Err()
}

// Reach fails with ErrUnreachable when no API server responds within 10 seconds, or when it rejects the credentials.
func Reach(ctx context.Context, config *rest.Config) error {
	_, err := reach(ctx, config)
	return err
}

// reach connects to a cluster that responds. The client may not write.
func reach(ctx context.Context, config *rest.Config) (*client.Client, error) {
	connected, err := client.New(config, client.NewGuard(""))
	if err != nil {
		return nil, err
	}
	if _, err := serverVersion(ctx, connected); err != nil {
		return nil, unreachable(config, err)
	}
	return connected, nil
}

// refused removes what the run has created on a cluster that it cannot test, and returns the reason.
func (e *Environment) refused(ctx context.Context, reason error) error {
	return errors.Join(fmt.Errorf("%w: %w", ErrRefused, reason), e.Teardown(context.WithoutCancel(ctx)))
}

// unreachable names the server, the cause and the remedy.
func unreachable(config *rest.Config, err error) error {
	advice := "check that it runs, and that this is its address"
	if apierrors.IsUnauthorized(err) {
		advice = "check that they have not expired"
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrUnreachable, config.Host, err, advice)
}

func serverVersion(ctx context.Context, from *client.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	response := firstWord(ctx, from)
	if apierrors.IsUnauthorized(response.Err) {
		return "", fmt.Errorf("the server does not accept the credentials of this context (401): %w", response.Err)
	}
	if errors.Is(response.Err, context.DeadlineExceeded) {
		return "", fmt.Errorf("no response within %s", reachable)
	}
	if refused := (*url.Error)(nil); errors.As(response.Err, &refused) {
		return "", refused.Err // without the address, which the caller adds
	}
	info := apiversion.Info{}
	if _ = json.Unmarshal(response.Body, &info); response.Err == nil && info.GitVersion != "" {
		return info.GitVersion, nil
	}
	if said := response.Object; response.StatusCode != 0 && (response.Err == nil || said == nil || said.GetKind() != "Status") {
		return "", fmt.Errorf("GET /version: the response (%d) is not that of a Kubernetes API server", response.StatusCode)
	}
	if apierrors.IsForbidden(response.Err) { // the version is not needed
		return "", nil
	}
	return "", response.Err
}

// attempts is how often the version is requested from a server that accepts connections.
const attempts = 4

// firstWord requests the server's version. It retries while a second is left, unless the server cannot be connected to.
func firstWord(ctx context.Context, from *client.Client) client.Response {
	var response client.Response
	for range attempts {
		response = from.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: "/version"})
		deadline, limited := ctx.Deadline()
		if response.Authoritative() || client.NeverConnected(response.Err) || limited && time.Until(deadline) < time.Second {
			break
		}
	}
	return response
}

// createNamespaces creates a namespace for each worker, the objects that pods need in it, and the lease that marks the run as active.
func (e *Environment) createNamespaces(ctx context.Context) error {
	if e.inSharedNamespace() {
		return e.useSharedNamespace(ctx)
	}
	made := make([]*client.Object, e.workers())
	defer func() {
		e.namespaces = slices.DeleteFunc(made, func(namespace *client.Object) bool { return namespace == nil })
	}()
	create := func(worker int) (err error) {
		if made[worker-1], err = e.createNamespace(ctx, worker); err != nil {
			return err
		}
		return e.furnish(ctx, made[worker-1], worker)
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

// workers is the number of workers on this cluster.
func (e *Environment) workers() int { return max(e.options.Workers, 1) + e.extraWorkers }

// ExtraWorkers is the number of workers on this cluster in addition to those of the options; see Options.ExtraWorkers.
func (e *Environment) ExtraWorkers() int { return e.extraWorkers }

// furnish creates the objects that pods need in a namespace, and in the first one the lease that marks the run as active.
func (e *Environment) furnish(ctx context.Context, namespace *client.Object, worker int) (err error) {
	if worker == 1 {
		e.skew = skewOf(ctx, e.client, namespace.GetName())
		if e.lease, err = e.takeLease(ctx, namespace.GetName()); err != nil {
			return err
		}
	}
	account := fixtures.ServiceAccount()
	account.SetNamespace(namespace.GetName())
	account.SetLabels(e.labels(worker))
	response := e.client.Create(ctx, account)
	_, refused := response.RefusedByAdmission()
	if response.Err != nil && !refused && !apierrors.IsForbidden(response.Err) && !meta.IsNoMatchError(response.Err) {
		return fmt.Errorf("create service account %q in namespace %q: %w", account.GetName(), namespace.GetName(), response.Err)
	}
	return e.prepare(ctx, namespace, worker)
}

// prepare creates the prerequisites in order. Existing cluster-scoped objects are used unchanged.
func (e *Environment) prepare(ctx context.Context, namespace *client.Object, worker int) error {
	for _, manifest := range e.options.Prerequisites {
		object := manifest.DeepCopy()
		mapping, err := e.client.Mapping(object)
		if err != nil {
			return fmt.Errorf("create %s of the fixture: %w", client.Title(object), err)
		}
		object.SetNamespace("")
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			object.SetNamespace(namespace.GetName())
		}
		object.SetLabels(labels.Merge(object.GetLabels(), e.labels(worker)))
		if response := e.client.CreateNamed(ctx, object); response.Err != nil && !apierrors.IsAlreadyExists(response.Err) {
			return fmt.Errorf("create %s of the fixture: %w", client.Title(object), response.Err)
		}
	}
	return nil
}

func (e *Environment) labels(worker int) map[string]string {
	return session.Config{Run: e.options.Run, Worker: worker}.Labels()
}

// admitted limits how long the creator of a namespace may have to wait for permissions in it, because self-service platforms grant them
// after the namespace was created.
const admitted = 30 * time.Second

// createNamespace creates a worker's namespace and waits until the credentials may create objects in it.
func (e *Environment) createNamespace(ctx context.Context, worker int) (*client.Object, error) {
	namespace := fixtures.Namespace(fmt.Sprintf("%s-%d", e.options.Run, worker))
	namespace.SetLabels(e.labels(worker))
	response := e.client.Create(ctx, namespace)
	if apierrors.IsForbidden(response.Err) {
		return nil, fmt.Errorf("create namespace %q: %w; %s", namespace.GetName(), response.Err, namespaceRemedy)
	}
	if response.Err != nil {
		return nil, fmt.Errorf("create namespace %q: %w", namespace.GetName(), response.Err)
	}
	create := authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: namespace.GetName()}
	if allowed, err := e.client.Allowed(ctx, create); err == nil && !allowed {
		if err := e.bindInside(ctx, namespace.GetName()); err != nil {
			return response.Object, err
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, admitted, true, func(context.Context) (bool, error) {
		return e.client.Allowed(ctx, create) // with its own timeout: a slow server is not a refusal
	})
	if wait.Interrupted(err) {
		return response.Object, missingIn(create)
	}
	return response.Object, err
}

// insideRole is the role of deploy/rbac for the inside of the run's namespaces.
const insideRole = "deletion-conformance-inside"

// bindInside binds this role to the credentials in a worker's namespace, if they may. It does not in the namespaces of specs: the namespace
// controller may delete a binding before the run has removed its finalizers there.
func (e *Environment) bindInside(ctx context.Context, namespace string) error {
	bind := authorizationv1.ResourceAttributes{
		Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: insideRole, Namespace: namespace,
	}
	if allowed, err := e.client.Allowed(ctx, bind); err != nil || !allowed {
		return err
	}
	user, err := e.client.WhoAmI(ctx)
	if err != nil {
		return err
	}
	response := e.client.Create(ctx, &client.Object{Object: map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding",
		"metadata": map[string]any{"name": insideRole, "namespace": namespace},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": insideRole},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}},
	}})
	if response.Err != nil {
		return fmt.Errorf("bind the ClusterRole %s in namespace %q: %w", insideRole, namespace, response.Err)
	}
	return nil
}

// Session returns the configuration of one worker, numbered from 1.
func (e *Environment) Session(worker int) session.Config {
	return session.Config{
		Settings:             e.options.ForSlowness(e.Latency().Slowness()),
		Run:                  e.options.Run,
		Worker:               worker,
		GroupDomain:          e.groupDomain,
		Namespace:            e.namespaceOf(worker),
		Shared:               e.inSharedNamespace(),
		ServerVersion:        e.serverVersion,
		Unsupported:          e.Unsupported(),
		LostGarbageCollector: e.LostGarbageCollector(),
		Components:           e.options.Components,
		SkipReasons:          e.prevented(),
		Mutators:             e.mutators,
		NodeSkews:            e.nodeSkews,
		SpareNode:            e.SpareNode(),
	}
}

// SpareNode returns the node that disruptive specs have for themselves, so that other specs can run pods meanwhile: the second one, where
// components of nodes can be stopped at all. It is empty when there is none.
func (e *Environment) SpareNode() string {
	if !e.options.Disruptive || e.options.Components == "" {
		return ""
	}
	return e.secondNode
}

// namespaceOf returns the namespace of a worker, numbered from 1.
func (e *Environment) namespaceOf(worker int) string {
	if e.inSharedNamespace() {
		return e.options.SharedNamespace
	}
	return e.namespaces[max(worker-1, 0)%len(e.namespaces)].GetName()
}

// LoseGarbageCollector records that the garbage collector did not delete a barrier's canary. Workers that start later do not wait for it.
func (e *Environment) LoseGarbageCollector(reason string) { e.lostGarbageCollector.Store(reason) }

// LostGarbageCollector describes the canary that the garbage collector did not delete; empty when there is none.
func (e *Environment) LostGarbageCollector() string {
	reason, _ := e.lostGarbageCollector.Load().(string)
	return reason
}

// ServerVersion is the API server's gitVersion.
func (e *Environment) ServerVersion() string { return e.serverVersion }

// NodeRuntime is the container runtime that the nodes report ("containerd://1.7.2"); empty without nodes, or without the permission to list
// them.
func (e *Environment) NodeRuntime() string { return e.nodeRuntime }

// Unsupported maps missing features to the reasons, as far as they are known: see AwaitSimulatedNode.
func (e *Environment) Unsupported() map[v1alpha1.Feature]string {
	unsupported := maps.Clone(e.unsupported)
	if lost := e.lostNodes(); lost != "" {
		unsupported[v1alpha1.SimulatedNode] = lost
	}
	return unsupported
}
