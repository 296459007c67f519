// Package environment is what a run does to a cluster before and after its specs: it finds out what the cluster offers,
// makes namespaces for the workers, and removes all that the run made.
package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/admission"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// ErrUnreachable says that a cluster did not answer, or did not accept the credentials.
var ErrUnreachable = errors.New("cluster unreachable")

// ErrRefused says that a cluster answered and a run on it is not possible.
var ErrRefused = errors.New("preflight refused")

// Options say how a run wants to use a cluster.
type Options struct {
	session.Settings
	// Run is the run's id; see NewRunID.
	Run string
	// Workers is how many workers will run specs at the same time; each gets a namespace.
	Workers int
	// Prerequisites are made in each worker's namespace, or once where they are cluster-scoped, before anything is tested.
	Prerequisites []*client.Object
	// SharedNamespace is where the run is to stay; empty for namespaces of its own.
	SharedNamespace string
	// Supported names needs that whoever made the cluster vouches for: they are not probed, so a cluster that does not
	// meet them fails behaviors instead of having them skipped.
	Supported []v1alpha1.Feature
	// Unsupported says of needs that are known not to be met why not; they are not probed either.
	Unsupported map[v1alpha1.Feature]string
	// CustomKinds says that specs will use custom kinds. Those that the run defines for them are defined at once, because the garbage
	// collector learns of a new kind after up to 30 s.
	CustomKinds bool
	// Components is the socket under which components of the cluster can be stopped; empty where they cannot.
	Components string
	// Behaviors are what the run will do: what they create is tried before. None are tried where objects of a resource stand in for
	// ConfigMaps.
	Behaviors []v1alpha1.Behavior
	// CleanupTimeout is how long the run waits at its end until everything it made is gone; 0 for as long as DefaultCleanupTimeout on a
	// fast cluster, and longer on a slow one.
	CleanupTimeout time.Duration
	// ForceFinalizers removes finalizers of other controllers, too, and does not wait for them.
	ForceFinalizers bool
}

// guard is what keeps the run from changing what it did not create. These namespaces are its own.
func (o Options) guard(namespaces ...*client.Object) *client.Guard {
	var names []string
	for _, namespace := range namespaces {
		names = append(names, namespace.GetName())
	}
	guard := client.NewGuard(o.Run, names...)
	o.Except(guard)
	return guard
}

// Environment is a run's presence on a cluster: the namespaces it made there, and what it found out.
type Environment struct {
	options       Options
	client        *client.Client
	lease         *lease
	namespaces    []*client.Object
	groupDomain   string
	serverVersion string
	nodeRuntime   string
	unsupported   map[v1alpha1.Feature]string
	// lostGarbageCollector says which canary the garbage collector left, for workers that start later.
	lostGarbageCollector atomic.Value
	// latency is how fast the cluster is.
	latencyLock sync.Mutex
	latency     Latency
	// mutators are others' admission that changes objects, and obstacles what admission does to what the run will create.
	mutators  admission.Mutators
	obstacles []obstacle
	// skew is how far the server's clock is ahead of the runner's, and nodeSkews how far those of nodes are ahead of the server's.
	skew      time.Duration
	nodeSkews map[string]time.Duration
	// found is what was found out about the cluster, and nodeProbe a look that is still going on; nil where none was begun.
	found     findings
	nodeProbe *nodeProbe
	// unavailable are the APIs that do not answer, and unreadable the custom resources that cannot be listed. Each is found out when it
	// is first needed.
	unavailable, unreadable func() ([]string, error)
	// unprobed says that an interruption kept the run from finding out what is unsupported.
	unprobed bool
}

// NewRunID makes an id for a run: short, unlikely to be taken, and fit for names and labels.
func NewRunID() string { return "dc" + rand.String(8) }

// reachable bounds how long a cluster may take to say its version, in which time a dead one is told from a slow one.
const reachable = 10 * time.Second

// Setup asks a cluster whether it is there, makes the run's namespaces and finds out what it offers. What it made is
// removed again when it fails. It fails with ErrUnreachable or ErrRefused.
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
	if err := environment.createNamespaces(ctx); err != nil {
		return nil, environment.refused(ctx, err)
	}
	if options.CustomKinds && !environment.inSharedNamespace() {
		environment.defineCustomKinds(ctx)
	}
	environment.options.WebhookHost = webhookHost(options.WebhookHost, config.Host)
	environment.measureReads(ctx)
	var trying sync.WaitGroup
	var crashed error
	trying.Go(func() { crashed = environment.tryFixtures(ctx) })
	trying.Go(func() { environment.check(ctx) })
	err = environment.probe(ctx, config)
	trying.Wait()
	if err = errors.Join(err, crashed); err != nil {
		return nil, environment.refused(ctx, err)
	}
	return environment, ctx.Err()
}

// refused removes what the run has made on a cluster that it cannot test, and says why it cannot.
func (e *Environment) refused(ctx context.Context, reason error) error {
	return errors.Join(fmt.Errorf("%w: %w", ErrRefused, reason), e.Teardown(context.WithoutCancel(ctx)))
}

// unreachable says which server, why, and what to do.
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
		return "", fmt.Errorf("no answer within %s", reachable)
	}
	if refused := (*url.Error)(nil); errors.As(response.Err, &refused) {
		return "", refused.Err // which names the address again otherwise
	}
	info := apiversion.Info{}
	if _ = json.Unmarshal(response.Body, &info); response.Err == nil && info.GitVersion != "" {
		return info.GitVersion, nil
	}
	if said := response.Object; response.StatusCode != 0 && (response.Err == nil || said == nil || said.GetKind() != "Status") {
		return "", fmt.Errorf("GET /version: the response (%d) is not that of a Kubernetes API server", response.StatusCode)
	}
	if apierrors.IsForbidden(response.Err) { // the version is a secret there, and nobody needs to know it
		return "", nil
	}
	return "", response.Err
}

// attempts is how often a server that can be connected to is asked for its version.
const attempts = 4

// firstWord asks for the server's version. A server that answers badly at times is asked again; one that nobody can connect to
// is not there.
func firstWord(ctx context.Context, from *client.Client) client.Response {
	var response client.Response
	for range attempts {
		response = from.SendOnce(ctx, client.Request{Method: http.MethodGet, Path: "/version"})
		if response.Authoritative() || client.NeverConnected(response.Err) || ctx.Err() != nil {
			break
		}
	}
	return response
}

// createNamespaces makes a namespace for each worker, what pods need in it, and the lease that says the run is alive.
func (e *Environment) createNamespaces(ctx context.Context) error {
	if e.inSharedNamespace() {
		return e.useSharedNamespace(ctx)
	}
	for worker := 1; worker <= max(e.options.Workers, 1); worker++ {
		namespace, err := e.createNamespace(ctx, worker)
		if err != nil {
			return err
		}
		e.namespaces = append(e.namespaces, namespace)
		if err := e.furnish(ctx, namespace, worker); err != nil {
			return err
		}
	}
	return nil
}

// furnish makes what pods need in a namespace, and in the first the lease that says the run is alive.
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

// prepare makes what must exist before the objects that are tested, in the order in which it is given. What is there already of a
// cluster-scoped name is used as it is.
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
		if response := e.client.Create(ctx, object); response.Err != nil && !apierrors.IsAlreadyExists(response.Err) {
			return fmt.Errorf("create %s of the fixture: %w", client.Title(object), response.Err)
		}
	}
	return nil
}

func (e *Environment) labels(worker int) map[string]string {
	return session.Config{Run: e.options.Run, Worker: worker}.Labels()
}

// admitted bounds how long a namespace's maker may have to wait for permissions in it: self-service platforms grant
// them after the namespace was made, and a busy one takes its time.
const admitted = 30 * time.Second

// createNamespace makes a worker's namespace and waits until the credentials may create things in it.
func (e *Environment) createNamespace(ctx context.Context, worker int) (*client.Object, error) {
	namespace := fixtures.Namespace(fmt.Sprintf("%s-%d", e.options.Run, worker))
	namespace.SetLabels(e.labels(worker))
	response := e.client.Create(ctx, namespace)
	if response.Err != nil {
		return nil, fmt.Errorf("create namespace %q: %w", namespace.GetName(), response.Err)
	}
	create := authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: namespace.GetName()}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, admitted, true, func(context.Context) (bool, error) {
		return e.client.Allowed(ctx, create) // in its own time: a slow server is no refusal
	})
	if wait.Interrupted(err) {
		return response.Object, fmt.Errorf("the credentials do not allow to %s", client.Permission(create))
	}
	return response.Object, err
}

// Session is what one worker, numbered from 1, needs to know.
func (e *Environment) Session(worker int) session.Config {
	namespace := e.options.SharedNamespace
	if !e.inSharedNamespace() {
		namespace = e.namespaces[worker-1].GetName()
	}
	return session.Config{
		Settings:             e.options.ForSlowness(e.Latency().Slowness()),
		Run:                  e.options.Run,
		Worker:               worker,
		GroupDomain:          e.groupDomain,
		Namespace:            namespace,
		Shared:               e.inSharedNamespace(),
		ServerVersion:        e.serverVersion,
		Unsupported:          e.Unsupported(),
		LostGarbageCollector: e.LostGarbageCollector(),
		Components:           e.options.Components,
		Prevented:            e.prevented(),
		Mutators:             e.mutators,
		NodeSkews:            e.nodeSkews,
	}
}

// LoseGarbageCollector notes that the garbage collector left a barrier's canary. Workers that start later do not wait for it.
func (e *Environment) LoseGarbageCollector(reason string) { e.lostGarbageCollector.Store(reason) }

// LostGarbageCollector says which canary the garbage collector left; empty as long as it takes them.
func (e *Environment) LostGarbageCollector() string {
	reason, _ := e.lostGarbageCollector.Load().(string)
	return reason
}

// ServerVersion is the API server's gitVersion.
func (e *Environment) ServerVersion() string { return e.serverVersion }

// NodeRuntime is the container runtime that the nodes report ("containerd://1.7.2"); empty without nodes, or without
// the permission to look at them.
func (e *Environment) NodeRuntime() string { return e.nodeRuntime }

// Unsupported says of each need that is not met why not, as far as that is known: see AwaitSimulatedNode.
func (e *Environment) Unsupported() map[v1alpha1.Feature]string {
	unsupported := maps.Clone(e.unsupported)
	if lost := e.lostNodes(); lost != "" {
		unsupported[v1alpha1.SimulatedNode] = lost
	}
	return unsupported
}
