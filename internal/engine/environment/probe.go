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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// probeTime limits how long a controller may take to react to a probe before it counts as missing. A working collector needs about 50 ms.
const probeTime = 10 * time.Second

// probeBusyTime is the same for a garbage collector where other built-in controllers act: it is late rather than missing.
const probeBusyTime = 2 * time.Minute

// notOwn is why OwnCluster is not supported, unless the options list it.
const notOwn = "the cluster was not created for this run: use --provider embedded or --provider kind"

// unmet is why a feature is not supported.
type unmet string

func (u unmet) Error() string { return string(u) }

// probe determines which features the cluster and the credentials have. All probes run in parallel. It returns the results for note, and
// fails when a probe panics.
func (e *Environment) probe(ctx context.Context) (answers *sync.Map, err error) {
	probes := map[v1alpha1.Feature]func(context.Context) error{
		v1alpha1.GC:            e.probeGarbageCollector,
		v1alpha1.KCM:           e.probeControllers,
		v1alpha1.CRD:           e.probeDefinitions,
		v1alpha1.Admin:         e.probePermission("clusterroles", "rbac.authorization.k8s.io"),
		v1alpha1.Namespace:     e.probeNamespaces,
		v1alpha1.Volume:        e.probePermission("persistentvolumes", ""),
		v1alpha1.Class:         e.probeClasses,
		v1alpha1.SimulatedNode: e.probeSimulatedNode,
		v1alpha1.Hook:          e.probeWebhook,
		v1alpha1.Node:          e.probeNodes,
		v1alpha1.TwoNodes:      e.probeTwoNodes,
		v1alpha1.PodNetwork:    e.probePodNetwork,
		// kubectl does not depend on the cluster
		v1alpha1.Kubectl:    func(context.Context) error { return unmetIf(e.options.Kubectl.Absent) },
		v1alpha1.Controller: e.probeController,
		v1alpha1.OwnCluster: func(context.Context) error { return unmet(notOwn) },
	}
	crashes := make(chan error, len(probes))
	answers = &sync.Map{}
	var running sync.WaitGroup
	for need, ask := range probes {
		if _, known := e.unsupported[need]; known || need != v1alpha1.Node && slices.Contains(e.options.Supported, need) {
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
	return answers, <-crashes
}

// note records the results of the probes. An interrupted probe has none. It fails when a probe could not be completed.
func (e *Environment) note(answers *sync.Map) error {
	var failures []error
	answers.Range(func(need, answer any) bool {
		err := answer.(error)
		switch {
		case e.unprobed:
			err = unmet("the run was interrupted during the probe")
		case client.Inconclusive(err) && !errors.As(err, new(unmet)):
			failures = append(failures, fmt.Errorf("probe feature %s: %w", need, err))
		}
		e.unsupported[need.(v1alpha1.Feature)] = err.Error()
		if by := (missingFeature{}); errors.As(err, &by) {
			e.found.obstruct(need.(v1alpha1.Feature), by)
		}
		return true
	})
	return errors.Join(failures...)
}

// probeAttempts limits how often a probe is started again after connection errors.
const probeAttempts = 5

// persistently restarts a probe after connection errors, because a single broken connection must not skip all behaviors that require the
// feature.
func persistently(ctx context.Context, ask func(context.Context) error) error {
	var err error
	for range probeAttempts {
		if err = ask(ctx); err == nil || errors.As(err, new(unmet)) || !client.Inconclusive(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// unmetIf returns an unmet error if there is a reason.
func unmetIf(reason string) error {
	if reason == "" {
		return nil
	}
	return unmet(reason)
}

// probeGarbageCollector looks for any sign of a garbage collector: it deletes a dependent after its owner, it releases an owner that waits
// in the foreground, or it releases an owner that waits to be orphaned. One sign is enough; the behaviors test the rest.
func (e *Environment) probeGarbageCollector(ctx context.Context) error {
	watches := journal.NewWatches(e.client, e.Session(1).Labels().String())
	defer watches.Stop()
	signs, err := e.startCollection(ctx, watches)
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
	patience := e.options.Slowed(probeTime)
	err = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, answered)
	if wait.Interrupted(err) && !e.options.FixedWait && holding() == "" && e.probeControllers(ctx) == nil {
		patience = e.options.Slowed(probeBusyTime)
		err = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, answered)
	}
	if wait.Interrupted(err) {
		reason := fmt.Sprintf("the garbage collector did not act within %s", patience)
		if hold := holding(); hold != "" {
			reason += ": " + hold
		}
		return unmet(reason)
	}
	return err
}

// startCollection gives a collector three tasks. It returns the uids of the objects whose deletion shows that one was done.
func (e *Environment) startCollection(ctx context.Context, watches *journal.Watches) (sets.Set[types.UID], error) {
	signs := sets.Set[types.UID]{}
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		owner, err := e.createProbe(ctx, watches, strings.ToLower(string(policy)))
		if err != nil {
			return nil, err
		}
		sign := owner
		if policy == metav1.DeletePropagationBackground {
			reference := *metav1.NewControllerRef(owner, owner.GroupVersionKind())
			reference.BlockOwnerDeletion = nil // it requires a permission that namespace admins do not have
			if sign, err = e.createProbe(ctx, watches, "dependent", reference); err != nil {
				return nil, err
			}
		}
		if response := e.client.Delete(ctx, owner, metav1.DeleteOptions{PropagationPolicy: &policy}); response.Err != nil {
			return nil, response.Err
		}
		signs.Insert(sign.GetUID())
	}
	return signs, nil
}

// createProbe creates an object that is watched before it exists.
func (e *Environment) createProbe(ctx context.Context, watches *journal.Watches, name string, owners ...metav1.OwnerReference) (*client.Object, error) {
	object := e.client.StandInFor(fixtures.ConfigMap(e.options.Run + "-probe-" + name + "-" + rand.String(6)))
	object.SetNamespace(e.namespaceOf(1))
	object.SetLabels(e.labels(1))
	object.SetOwnerReferences(owners)
	collection, err := e.client.CollectionOf(object)
	if err != nil {
		return nil, err
	}
	if response := watches.Cover(ctx, collection); response.Err != nil {
		return nil, response.Err
	}
	response := e.client.Create(ctx, object)
	return response.Object, response.Err
}

// probeControllers looks for the built-in controllers by the default service account that one of them creates in every namespace.
func (e *Environment) probeControllers(ctx context.Context) error {
	account := fixtures.ServiceAccount()
	account.SetNamespace(e.namespaces[0].GetName())
	account.SetName("default")
	if err := e.served(account.GroupVersionKind()); err != nil {
		return err
	}
	var response client.Response
	patience := e.options.Slowed(probeTime)
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		response = e.client.Get(ctx, account) // with its own timeout: an interrupted request proves nothing
		return response.Err == nil || apierrors.IsForbidden(response.Err), nil
	})
	switch {
	case err != nil && !response.Authoritative():
		return fmt.Errorf("the built-in controllers could not be probed: %w", response.Err)
	case err != nil:
		return unmet(fmt.Sprintf("the built-in controllers did not act within %s (no default ServiceAccount in the namespace)", patience))
	case response.Err != nil:
		return fmt.Errorf("the built-in controllers could not be probed: %w", response.Err)
	}
	return nil
}

// served fails with the reason when the server does not serve a kind, and no other replaces it.
func (e *Environment) served(kind schema.GroupVersionKind) error {
	err := e.client.Serves(kind)
	if meta.IsNoMatchError(err) {
		return unmet(client.NotServed(kind))
	}
	return err
}

// probeDefinitions checks whether the credentials may define kinds.
func (e *Environment) probeDefinitions(ctx context.Context) error {
	if err := e.served(fixtures.CustomResourceDefinition(client.Domain).GroupVersionKind()); err != nil {
		return err
	}
	return e.probePermission(customResourceDefinitions.Resource.Resource, customResourceDefinitions.Resource.Group)(ctx)
}

// probePermission checks whether the credentials may create objects of a cluster-scoped resource.
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

// probeWebhook reports why webhooks cannot be tested. Whether the API server can reach one is known only when a spec creates it.
func (e *Environment) probeWebhook(ctx context.Context) error {
	if e.options.WebhookHost == "" {
		return unmet("the API server cannot reach a webhook on this machine: set --webhook-host to an address that it can reach, or run in a Job")
	}
	if e.options.WebhookService {
		create := authorizationv1.ResourceAttributes{
			Verb: "create", Resource: "endpointslices", Group: "discovery.k8s.io", Namespace: e.namespaces[0].GetName(),
		}
		if allowed, err := e.client.Allowed(ctx, create); err != nil || !allowed {
			return cmp.Or(err, error(denied(client.Permission(create))))
		}
	}
	return e.probePermission("validatingwebhookconfigurations", "admissionregistration.k8s.io")(ctx)
}

// webhookHost returns the address under which an API server can reach this machine: the one that the user set, loopback for a local server,
// or the pod's address inside the cluster.
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

// nodesAtOnce is the page size for nodes. On a large cluster the first page is enough, so there is no read-ahead as in client-go's pager.
const nodesAtOnce = "50"

// nodePages limits the pages of nodes, for a server that returns pages without end.
const nodePages = 400

var nodes = client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"}

// probeNodes looks for a Ready node and records its container runtime. It only records it where the creator of the cluster guarantees nodes.
func (e *Environment) probeNodes(ctx context.Context) error {
	found, err := e.lookForNodes(ctx, 1)
	if len(found.runtimes) > 0 {
		e.nodeRuntime = found.runtimes[0]
	}
	switch {
	case slices.Contains(e.options.Supported, v1alpha1.Node):
		return nil
	case err != nil:
		return err
	case len(found.runtimes) > 0:
		return e.probePod(ctx, v1alpha1.Node, "")
	}
	if found.simulator != "" {
		return unmet(fmt.Sprintf("no node runs containers: %s simulates the nodes", found.simulator))
	}
	if len(found.systems) > 0 {
		return unmet(fmt.Sprintf("no Linux node is Ready (nodes in the cluster: %d, %s)", found.seen, strings.Join(found.systems, ", ")))
	}
	return unmet(fmt.Sprintf("no node is Ready (nodes in the cluster: %d)", found.seen))
}

// probeTwoNodes looks for two Ready nodes on which pods can be scheduled.
func (e *Environment) probeTwoNodes(ctx context.Context) error {
	found, err := e.lookForNodes(ctx, 2)
	if err != nil {
		return err
	}
	if len(found.names) > 1 {
		e.secondNode = found.names[1]
		for _, name := range found.names[:2] {
			if err := e.probePod(ctx, v1alpha1.TwoNodes, name); err != nil {
				return err
			}
		}
		return nil
	}
	return unmet(fmt.Sprintf("two schedulable nodes that are Ready are needed, and there are %d (nodes in the cluster: %d)",
		len(found.names), found.seen))
}

// errNoNodes is the result of probes on a server without the resource nodes.
var errNoNodes = unmet(client.NotServed(corev1.SchemeGroupVersion.WithKind("Node")))

// foundNodes are the nodes of a cluster.
type foundNodes struct {
	// names and runtimes are those of Ready nodes, and of their container runtimes.
	names, runtimes []string
	// simulator is what simulates a node; empty when nothing does.
	simulator string
	// systems are other operating systems of nodes than Linux.
	systems []string
	// seen is the number of all nodes.
	seen int
}

// lookForNodes lists nodes until enough of them are Ready. More than one must also be schedulable.
func (e *Environment) lookForNodes(ctx context.Context, enough int) (foundNodes, error) {
	found := foundNodes{}
	for next, pages := "", 0; pages == 0 || next != "" && pages < nodePages; pages++ {
		var page []*client.Object
		var response client.Response
		page, next, response = e.client.Page(ctx, nodes, url.Values{"limit": {nodesAtOnce}, "continue": {next}})
		switch {
		case apierrors.IsNotFound(response.Err):
			return found, errNoNodes
		case response.Err != nil:
			return found, fmt.Errorf("the nodes could not be listed: %w", response.Err)
		}
		for _, node := range page {
			found.add(node, enough > 1)
			if len(found.runtimes) >= enough {
				return found, nil
			}
		}
	}
	return found, nil
}

// add adds a node.
func (f *foundNodes) add(node *client.Object, schedulable bool) {
	f.seen++
	by := simulatedBy(node)
	f.simulator = cmp.Or(f.simulator, by)
	if system := node.GetLabels()[corev1.LabelOSStable]; system != "" && system != string(corev1.Linux) {
		f.systems = slices.Compact(append(f.systems, system))
		return
	}
	if runtime := readyRuntime(node); runtime != "" && by == "" && (!schedulable || !closed(node)) {
		f.names, f.runtimes = append(f.names, node.GetName()), append(f.runtimes, runtime)
	}
}

// closed reports whether pods without tolerations are not scheduled on a node.
func closed(node *client.Object) bool {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	return slices.ContainsFunc(taints, func(taint any) bool {
		its, _ := taint.(map[string]any)
		return its["effect"] != string(corev1.TaintEffectPreferNoSchedule)
	})
}

// simulatedBy names the simulator of a node that runs no containers; empty for real nodes. KWOK marks its nodes with an annotation, Virtual
// Kubelet with a label.
func simulatedBy(node *client.Object) string {
	switch {
	case node.GetAnnotations()["kwok.x-k8s.io/node"] != "", node.GetLabels()["type"] == "kwok":
		return "KWOK"
	case node.GetLabels()["type"] == "virtual-kubelet", node.GetLabels()["kubernetes.io/role"] == "virtual-kubelet":
		return "Virtual Kubelet"
	}
	return ""
}

// readyRuntime returns the container runtime of a Ready node; empty for other nodes.
func readyRuntime(node *client.Object) string {
	if !meta.IsStatusConditionTrue(describe.Conditions(node), string(corev1.NodeReady)) {
		return ""
	}
	runtime, _, _ := unstructured.NestedString(node.Object, "status", "nodeInfo", "containerRuntimeVersion")
	return runtime
}
