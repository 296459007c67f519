package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// probeTime bounds how long a controller may take to answer a probe before it counts as absent. A collector that is
// there takes some 50 ms.
const probeTime = 10 * time.Second

// unmet says why a need is not met.
type unmet string

func (u unmet) Error() string { return string(u) }

// probe finds out which needs the cluster and the credentials meet. All probes run at the same time. It fails when that cannot be
// found out of one.
func (e *Environment) probe(ctx context.Context, config *rest.Config) error {
	probes := map[v1alpha1.Feature]func(context.Context) error{
		v1alpha1.GC:            func(ctx context.Context) error { return e.probeGarbageCollector(ctx, config) },
		v1alpha1.KCM:           e.probeControllers,
		v1alpha1.CRD:           e.probePermission("customresourcedefinitions", "apiextensions.k8s.io"),
		v1alpha1.Admin:         e.probePermission("clusterroles", "rbac.authorization.k8s.io"),
		v1alpha1.Namespace:     e.probeNamespaces,
		v1alpha1.Volume:        e.probePermission("persistentvolumes", ""),
		v1alpha1.Class:         e.probeClasses,
		v1alpha1.SimulatedNode: e.probeSimulatedNode,
		v1alpha1.Hook:          e.probeWebhook,
		v1alpha1.Node:          e.probeNodes,
		v1alpha1.PodNetwork:    e.probePodNetwork,
		// Which kubectl there is was found out before, as it does not depend on the cluster.
		v1alpha1.Kubectl:    func(context.Context) error { return unmetIf(e.options.Kubectl.Absent) },
		v1alpha1.Controller: e.probeController,
	}
	crashes := make(chan error, len(probes))
	var answers sync.Map
	var running sync.WaitGroup
	for need, ask := range probes {
		if _, known := e.unsupported[need]; known || slices.Contains(e.options.Supported, need) {
			continue
		}
		running.Go(func() {
			var err error
			crashed := crash.Caught("probe", func() error { err = persistently(ctx, ask); return nil })
			if crashed != nil {
				crashes <- crashed
			}
			if err != nil {
				answers.Store(need, err)
			}
		})
	}
	running.Wait()
	close(crashes)
	e.unprobed = ctx.Err() != nil
	return errors.Join(e.note(&answers), <-crashes)
}

// note takes over what the probes found. Of those that an interruption cut short nothing is known.
func (e *Environment) note(answers *sync.Map) error {
	var failures []error
	answers.Range(func(need, answer any) bool {
		err := answer.(error)
		switch {
		case e.unprobed:
			err = unmet("the run was interrupted before it was found out")
		case client.Inconclusive(err) && !errors.As(err, new(unmet)):
			failures = append(failures, fmt.Errorf("find out whether the cluster offers %s: %w", need, err))
		}
		e.unsupported[need.(v1alpha1.Feature)] = err.Error()
		if by := (missingFeature{}); errors.As(err, &by) {
			e.found.obstruct(need.(v1alpha1.Feature), by)
		}
		return true
	})
	return errors.Join(failures...)
}

// probeAttempts is how often a probe is begun while the way to the server fails.
const probeAttempts = 5

// persistently asks again, from the start, while the way to the server fails: what a single broken connection makes unknown would
// keep all that needs it from being tested.
func persistently(ctx context.Context, ask func(context.Context) error) error {
	var err error
	for range probeAttempts {
		if err = ask(ctx); err == nil || errors.As(err, new(unmet)) || !client.Inconclusive(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// unmetIf is the error that a need is not met, where there is a reason.
func unmetIf(reason string) error {
	if reason == "" {
		return nil
	}
	return unmet(reason)
}

// probeGarbageCollector looks for any sign of a garbage collector: a dependent collected after its owner, an owner that waits
// in the foreground let go, an owner that waits to be orphaned let go. One is enough to know that there is a
// collector; whether it does all it must is for the behaviors to say.
func (e *Environment) probeGarbageCollector(ctx context.Context, config *rest.Config) error {
	prober, err := session.Connect(config, e.Session(1))
	if err != nil {
		return err
	}
	defer prober.Close()
	signs, err := e.startCollection(ctx, prober)
	if err != nil {
		return fmt.Errorf("the garbage collector could not be probed: %w", err)
	}
	patience := prober.Slowed(probeTime)
	held := map[types.UID]string{}
	ended := func(event journal.Event) bool {
		_, is := signs[event.Object.GetUID()]
		if is {
			held[event.Object.GetUID()] = client.ForeignHold(event.Object, event.Object.GetFinalizers())
		}
		return event.Type == watch.Deleted && is
	}
	answered := func(context.Context) (bool, error) {
		events, err := prober.Watches.Journal.Read(ended)
		for _, event := range events {
			e.acted(event.At.Sub(signs[event.Object.GetUID()]))
		}
		return len(events) > 0, err
	}
	err = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, answered)
	if wait.Interrupted(err) {
		reason := fmt.Sprintf("no garbage collector answered within %s", patience)
		if hold := slices.Max(append(slices.Collect(maps.Values(held)), "")); hold != "" {
			reason += ": " + hold
		}
		return unmet(reason)
	}
	return err
}

// startCollection gives a collector three things to do, and returns the uids of the objects whose end shows that it did
// one, and when it was given it.
func (e *Environment) startCollection(ctx context.Context, prober *session.Session) (map[types.UID]time.Time, error) {
	signs := map[types.UID]time.Time{}
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		owner, err := e.createProbe(ctx, prober, strings.ToLower(string(policy)))
		if err != nil {
			return nil, err
		}
		sign := owner
		if policy == metav1.DeletePropagationBackground {
			reference := *metav1.NewControllerRef(owner, owner.GroupVersionKind())
			reference.BlockOwnerDeletion = nil // which takes a permission that admins of a namespace do not have
			if sign, err = e.createProbe(ctx, prober, "dependent", reference); err != nil {
				return nil, err
			}
		}
		if response := e.client.Delete(ctx, owner, metav1.DeleteOptions{PropagationPolicy: &policy}); response.Err != nil {
			return nil, response.Err
		}
		signs[sign.GetUID()] = time.Now()
	}
	return signs, nil
}

// createProbe creates an object that is watched from before it exists.
func (e *Environment) createProbe(ctx context.Context, prober *session.Session, name string, owners ...metav1.OwnerReference) (*client.Object, error) {
	object := e.client.StandInFor(fixtures.ConfigMap(e.options.Run + "-probe-" + name + "-" + rand.String(6)))
	object.SetNamespace(prober.Namespace)
	object.SetLabels(prober.Labels())
	object.SetOwnerReferences(owners)
	collection, err := e.client.CollectionOf(object)
	if err != nil {
		return nil, err
	}
	if response := prober.Watches.Cover(ctx, collection); response.Err != nil {
		return nil, response.Err
	}
	response := e.client.Create(ctx, object)
	return response.Object, response.Err
}

// probeControllers looks for the built-in controllers by the work of one of them: the default service account that
// every new namespace gets.
func (e *Environment) probeControllers(ctx context.Context) error {
	account := fixtures.ServiceAccount()
	account.SetNamespace(e.namespaces[0].GetName())
	account.SetName("default")
	var response client.Response
	patience := e.Session(1).Slowed(probeTime)
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		response = e.client.Get(ctx, account) // in its own time: one that is cut off says nothing
		return response.Err == nil || apierrors.IsForbidden(response.Err), nil
	})
	switch {
	case err != nil && !response.Authoritative():
		return fmt.Errorf("the built-in controllers could not be probed: %w", response.Err)
	case err != nil:
		return unmet(fmt.Sprintf("no built-in controllers answered within %s (the namespace got no default service account)", patience))
	case response.Err != nil:
		return fmt.Errorf("the built-in controllers could not be probed: %w", response.Err)
	}
	return nil
}

// probePermission asks whether the credentials may create objects of a cluster-scoped resource.
func (e *Environment) probePermission(resource, group string) func(context.Context) error {
	return func(ctx context.Context) error {
		create := authorizationv1.ResourceAttributes{Verb: "create", Resource: resource, Group: group}
		allowed, err := e.client.Allowed(ctx, create)
		switch {
		case err != nil:
			return err
		case !allowed:
			return denied(client.Permission(create))
		}
		return nil
	}
}

// probeWebhook says why no webhook can be tried. Whether the API server really reaches it shows when one is made.
func (e *Environment) probeWebhook(ctx context.Context) error {
	if e.options.WebhookHost == "" {
		return unmet("the API server cannot reach a webhook on this machine: name an address that it can reach (--webhook-host)")
	}
	return e.probePermission("validatingwebhookconfigurations", "admissionregistration.k8s.io")(ctx)
}

// webhookHost is where an API server can reach this machine: where the user says, on loopback when the server is
// there too, or at the pod's own address inside the cluster.
func webhookHost(named, server string) string {
	if named != "" {
		return named
	}
	if address, err := url.Parse(server); err == nil {
		host := address.Hostname()
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			return "127.0.0.1"
		}
	}
	return os.Getenv("POD_IP")
}

// nodesAtOnce is how many nodes are looked at in one request: on a large cluster one of the first will do, so no page is read
// ahead (as client-go's pager would).
const nodesAtOnce = "50"

// nodePages is how many pages of nodes are looked at: where none of so many is ready, the server has no end of them.
const nodePages = 400

var nodes = client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"}

// probeNodes looks for a node that is ready, and notes its container runtime.
func (e *Environment) probeNodes(ctx context.Context) error {
	simulator, seen := "", 0
	for next, pages := "", 0; pages == 0 || next != "" && pages < nodePages; pages++ {
		var page []*client.Object
		var response client.Response
		page, next, response = e.client.Page(ctx, nodes, url.Values{"limit": {nodesAtOnce}, "continue": {next}})
		if response.Err != nil {
			return fmt.Errorf("the nodes could not be looked at: %w", response.Err)
		}
		for _, node := range page {
			by := simulatedBy(node)
			if runtime := readyRuntime(node); runtime != "" && by == "" {
				e.nodeRuntime = runtime
				return nil
			}
			simulator = cmp.Or(simulator, by)
		}
		seen += len(page)
	}
	if simulator != "" {
		return unmet(fmt.Sprintf("no node is real: %s simulates them, and runs no containers", simulator))
	}
	return unmet(fmt.Sprintf("no node is ready (%d in all)", seen))
}

// simulatedBy names what plays a node without running containers on it; it is empty for real nodes. KWOK marks its nodes
// with an annotation, Virtual Kubelet with a label.
func simulatedBy(node *client.Object) string {
	switch {
	case node.GetAnnotations()["kwok.x-k8s.io/node"] != "", node.GetLabels()["type"] == "kwok":
		return "KWOK"
	case node.GetLabels()["type"] == "virtual-kubelet", node.GetLabels()["kubernetes.io/role"] == "virtual-kubelet":
		return "Virtual Kubelet"
	}
	return ""
}

// readyRuntime is the container runtime of a node that is ready, empty for other nodes.
func readyRuntime(node *client.Object) string {
	if !meta.IsStatusConditionTrue(describe.Conditions(node), string(corev1.NodeReady)) {
		return ""
	}
	runtime, _, _ := unstructured.NestedString(node.Object, "status", "nodeInfo", "containerRuntimeVersion")
	return runtime
}
