package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// ErrUnreachable says that a cluster did not answer, or did not accept the credentials.
var ErrUnreachable = errors.New("cluster unreachable")

// ErrRefused says that a cluster answered and a run on it is not possible.
var ErrRefused = errors.New("preflight refused")

// VisitOptions say how a run wants to visit a cluster.
type VisitOptions struct {
	// Run is the run's id; see NewRunID.
	Run string
	// Workers is how many workers will run specs at the same time; each gets a namespace.
	Workers int
	// Vouched names needs that whoever made the cluster vouches for: they are not probed, so a cluster that does not
	// meet them fails behaviours instead of having them skipped.
	Vouched []v1alpha1.Need
	// Absent says of needs that are known not to be met why not; they are not probed either.
	Absent map[v1alpha1.Need]string
	// Control is passed on in the Terms.
	Control string
	Settings
}

// Visit is a run's presence on a cluster: the namespaces it made there, and what it found out.
type Visit struct {
	options       VisitOptions
	client        *client
	lease         *lease
	namespaces    []*Object
	serverVersion string
	nodeRuntime   string
	missing       map[v1alpha1.Need]string
	// unprobed says that an interruption kept the run from finding out what is missing.
	unprobed bool
}

// NewRunID makes an id for a run: short, unlikely to be taken, and fit for names and labels.
func NewRunID() string { return "dc" + rand.String(8) }

// reachable bounds how long a cluster may take to say its version, in which time a dead one is told from a slow one.
const reachable = 10 * time.Second

// Begin visits a cluster: it asks whether it is there, makes the run's namespaces and finds out what it offers. What it
// made is removed again when it fails. It fails with ErrUnreachable or ErrRefused.
func Begin(ctx context.Context, config *rest.Config, options VisitOptions) (*Visit, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	visit := &Visit{options: options, client: client, missing: map[v1alpha1.Need]string{}}
	maps.Copy(visit.missing, options.Absent)
	if visit.serverVersion, err = serverVersion(ctx, client); err != nil {
		return nil, unreachable(config, err)
	}
	if err := visit.settleIn(ctx); err != nil {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrRefused, err), visit.End(leaving))
	}
	visit.options.WebhookHost = webhookHost(options.WebhookHost, config.Host)
	visit.probe(ctx, config)
	return visit, ctx.Err()
}

// unreachable says which server, why, and what to do.
func unreachable(config *rest.Config, err error) error {
	advice := "check that it runs, and that this is its address"
	if apierrors.IsUnauthorized(err) {
		advice = "check that they have not expired"
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrUnreachable, config.Host, err, advice)
}

func serverVersion(ctx context.Context, client *client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	answer := client.askOnce(ctx, request{verb: http.MethodGet, path: "/version"})
	if apierrors.IsUnauthorized(answer.Err) {
		return "", fmt.Errorf("the server does not accept the credentials of this context (401): %w", answer.Err)
	}
	if errors.Is(answer.Err, context.DeadlineExceeded) {
		return "", fmt.Errorf("no answer within %s", reachable)
	}
	if refused := (*url.Error)(nil); errors.As(answer.Err, &refused) {
		return "", refused.Err // which names the address again otherwise
	}
	info := apiversion.Info{}
	if _ = json.Unmarshal(answer.body, &info); answer.Err == nil && info.GitVersion != "" {
		return info.GitVersion, nil
	}
	if said := answer.Object; answer.Status != 0 && (answer.Err == nil || said == nil || said.GetKind() != "Status") {
		return "", fmt.Errorf("GET /version: the answer (%d) is not that of a Kubernetes API server", answer.Status)
	}
	if apierrors.IsForbidden(answer.Err) { // the version is a secret there, and nobody needs to know it
		return "", nil
	}
	return "", answer.Err
}

// settleIn makes a namespace for each worker, what pods need in it, and the lease that says the run is alive.
func (v *Visit) settleIn(ctx context.Context) error {
	for worker := 1; worker <= max(v.options.Workers, 1); worker++ {
		namespace, err := v.makeNamespace(ctx, worker)
		if err != nil {
			return err
		}
		v.namespaces = append(v.namespaces, namespace)
		if worker == 1 {
			if v.lease, err = v.client.takeLease(ctx, namespace.GetName(), v.options.Run); err != nil {
				return err
			}
		}
		account := fixtures.ServiceAccount()
		account.SetNamespace(namespace.GetName())
		account.SetLabels(v.labels(worker))
		if answer := v.client.create(ctx, account); answer.Err != nil && !apierrors.IsForbidden(answer.Err) {
			return fmt.Errorf("create service account %q in namespace %q: %w", account.GetName(), namespace.GetName(), answer.Err)
		}
	}
	return nil
}

func (v *Visit) labels(worker int) map[string]string {
	return map[string]string{RunLabel: v.options.Run, WorkerLabel: strconv.Itoa(worker)}
}

// admitted bounds how long a namespace's maker may have to wait for permissions in it: self-service platforms grant
// them after the namespace was made.
const admitted = 10 * time.Second

// makeNamespace makes a worker's namespace and waits until the credentials may create things in it.
func (v *Visit) makeNamespace(ctx context.Context, worker int) (*Object, error) {
	namespace := &Object{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(fmt.Sprintf("%s-%d", v.options.Run, worker))
	namespace.SetLabels(v.labels(worker))
	answer := v.client.create(ctx, namespace)
	if answer.Err != nil {
		return nil, fmt.Errorf("create namespace %q: %w", namespace.GetName(), answer.Err)
	}
	create := authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: namespace.GetName()}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, admitted, true, func(ctx context.Context) (bool, error) {
		return v.client.allowed(ctx, create)
	})
	if wait.Interrupted(err) {
		return answer.Object, fmt.Errorf("the credentials do not allow to %s", permission(create))
	}
	return answer.Object, err
}

// Terms are the terms for one worker, numbered from 1.
func (v *Visit) Terms(worker int) Terms {
	return Terms{
		Run:           v.options.Run,
		Worker:        worker,
		Namespace:     v.namespaces[worker-1].GetName(),
		ServerVersion: v.serverVersion,
		Missing:       maps.Clone(v.missing),
		Control:       v.options.Control,
		Settings:      v.options.Settings,
	}
}

// ServerVersion is the API server's gitVersion.
func (v *Visit) ServerVersion() string { return v.serverVersion }

// NodeRuntime is the container runtime that the nodes report ("containerd://1.7.2"); empty without nodes, or without
// the permission to look at them.
func (v *Visit) NodeRuntime() string { return v.nodeRuntime }

// Missing says of each need that is not met why not.
func (v *Visit) Missing() map[v1alpha1.Need]string { return maps.Clone(v.missing) }
