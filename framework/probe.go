package framework

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// probeTime bounds how long a controller may take to answer a probe before it counts as absent. A collector that is
// there takes some 50 ms.
const probeTime = 10 * time.Second

// probe finds out which needs the cluster and the credentials meet. All probes run at the same time.
func (v *Visit) probe(ctx context.Context, config *rest.Config) {
	probes := map[v1alpha1.Need]func(context.Context) string{
		v1alpha1.GC:    func(ctx context.Context) string { return v.probeCollector(ctx, config) },
		v1alpha1.KCM:   v.probeControllers,
		v1alpha1.CRD:   v.probePermission("customresourcedefinitions", "apiextensions.k8s.io"),
		v1alpha1.Admin: v.probePermission("clusterroles", "rbac.authorization.k8s.io"),
		v1alpha1.Hook:  v.probeWebhook,
		v1alpha1.Node:  v.probeNodes,
	}
	var answers sync.Map
	var running sync.WaitGroup
	for need, ask := range probes {
		if _, known := v.options.Absent[need]; known || slices.Contains(v.options.Vouched, need) {
			continue
		}
		running.Go(func() {
			reason := ask(ctx)
			if ctx.Err() != nil {
				reason = "the run was interrupted before it was found out"
			}
			if reason != "" {
				answers.Store(need, reason)
			}
		})
	}
	running.Wait()
	v.unprobed = ctx.Err() != nil
	answers.Range(func(need, reason any) bool {
		v.missing[need.(v1alpha1.Need)] = reason.(string)
		return true
	})
}

// probeCollector looks for any sign of a garbage collector: a dependent collected after its owner, an owner that waits
// in the foreground let go, an owner that waits to be orphaned let go. One is enough to know that there is a
// collector; whether it does all it must is for the behaviours to say.
func (v *Visit) probeCollector(ctx context.Context, config *rest.Config) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	prober, err := Open(config, v.Terms(1))
	if err != nil {
		return err.Error()
	}
	defer prober.Close()
	signs, err := v.startCollection(ctx, prober)
	if err != nil {
		return "the garbage collector could not be probed: " + err.Error()
	}
	answered := func(context.Context) (bool, error) {
		for _, sign := range signs {
			if gone, err := Show(Deleted(sign)).Match(&History{prober.watches.journal, signs}); gone || err != nil {
				return gone, err
			}
		}
		return false, nil
	}
	if err := wait.PollUntilContextCancel(ctx, memoryPolling, true, answered); err != nil {
		return fmt.Sprintf("no garbage collector answered within %s", probeTime)
	}
	return ""
}

// startCollection gives a collector three things to do, and returns the objects whose end shows that it did one.
func (v *Visit) startCollection(ctx context.Context, prober *Session) ([]*Object, error) {
	create := func(name string, options ...ObjectOption) (*Object, error) {
		object := fixtures.ConfigMap("probe-" + name)
		object.SetNamespace(prober.Namespace)
		object.SetLabels(v.labels(prober.Worker))
		for _, option := range options {
			option(object)
		}
		if err := prober.watches.cover(ctx, object); err != nil {
			return nil, err
		}
		answer := v.client.create(ctx, object)
		return answer.Object, answer.Err
	}
	var signs []*Object
	for name, policy := range map[string]DeleteOption{"background": Background, "foreground": Foreground, "orphan": Orphan} {
		owner, err := create(name)
		if err != nil {
			return nil, err
		}
		sign := owner
		if name == "background" {
			if sign, err = create(name+"-dependent", OwnedBy(owner)); err != nil {
				return nil, err
			}
		}
		options := metav1.DeleteOptions{}
		policy(&options)
		if answer := v.client.delete(ctx, owner, options); answer.Err != nil {
			return nil, answer.Err
		}
		signs = append(signs, sign)
	}
	return signs, nil
}

// probeControllers looks for the built-in controllers by the work of one of them: the default service account that
// every new namespace gets.
func (v *Visit) probeControllers(ctx context.Context) string {
	account := fixtures.ServiceAccount()
	account.SetNamespace(v.namespaces[0].GetName())
	account.SetName("default")
	var answer Answer
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, probeTime, true, func(ctx context.Context) (bool, error) {
		answer = v.client.get(ctx, account)
		return answer.Err == nil || apierrors.IsForbidden(answer.Err), nil
	})
	switch {
	case err != nil:
		return fmt.Sprintf("no built-in controllers answered within %s (the namespace got no default service account)", probeTime)
	case answer.Err != nil:
		return "the built-in controllers could not be probed: " + answer.Message()
	}
	return ""
}

// probePermission asks whether the credentials may create objects of a cluster-scoped resource.
func (v *Visit) probePermission(resource, group string) func(context.Context) string {
	return func(ctx context.Context) string {
		create := authorizationv1.ResourceAttributes{Verb: "create", Resource: resource, Group: group}
		allowed, err := v.client.allowed(ctx, create)
		switch {
		case err != nil:
			return err.Error()
		case !allowed:
			return "the credentials do not allow to " + permission(create)
		}
		return ""
	}
}

// probeWebhook says why no webhook can be tried. Whether the API server really reaches it shows when one is made.
func (v *Visit) probeWebhook(ctx context.Context) string {
	if v.options.WebhookHost == "" {
		return "the API server cannot reach a webhook on this machine: name an address that it can reach (--webhook-host)"
	}
	return v.probePermission("validatingwebhookconfigurations", "admissionregistration.k8s.io")(ctx)
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

// nodesAtOnce is how many nodes are looked at in one request: on a large cluster one of the first will do.
const nodesAtOnce = "50"

// probeNodes looks for a node that is ready, and notes its container runtime.
func (v *Visit) probeNodes(ctx context.Context) string {
	simulator, seen := "", 0
	for next, more := "", true; more; more = next != "" {
		var nodes []*Object
		var err error
		nodes, next, err = v.client.page(ctx, "/api/v1/nodes", url.Values{"limit": {nodesAtOnce}, "continue": {next}})
		if err != nil {
			return "the nodes could not be looked at: " + err.Error()
		}
		for _, node := range nodes {
			by := simulatedBy(node)
			if runtime := readyRuntime(node); runtime != "" && by == "" {
				v.nodeRuntime = runtime
				return ""
			}
			simulator = cmp.Or(simulator, by)
		}
		seen += len(nodes)
	}
	if simulator != "" {
		return fmt.Sprintf("no node is real: %s simulates them, and runs no containers", simulator)
	}
	return fmt.Sprintf("no node is ready (%d in all)", seen)
}

// simulatedBy names what plays a node without running containers on it; it is empty for real nodes. KWOK marks its nodes
// with an annotation, Virtual Kubelet with a label.
func simulatedBy(node *Object) string {
	switch {
	case node.GetAnnotations()["kwok.x-k8s.io/node"] != "", node.GetLabels()["type"] == "kwok":
		return "KWOK"
	case node.GetLabels()["type"] == "virtual-kubelet", node.GetLabels()["kubernetes.io/role"] == "virtual-kubelet":
		return "Virtual Kubelet"
	}
	return ""
}

// readyRuntime is the container runtime of a node that is ready, empty for other nodes.
func readyRuntime(node *Object) string {
	if ready, _ := haveCondition("Ready").Match(node); !ready {
		return ""
	}
	runtime, _, _ := unstructured.NestedString(node.Object, "status", "nodeInfo", "containerRuntimeVersion")
	return runtime
}
