package preflight

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// maxParallelNodes is the page size for nodes. On a large cluster the first page is enough, so there is no read-ahead as in client-go's pager.
const maxParallelNodes = "50"

// nodePages limits the pages of nodes, for a server that returns pages without end.
const nodePages = 400

// probeNodes looks for a Ready node, and returns its container runtime. It only returns it where the creator of the cluster guarantees nodes.
func probeNodes(ctx context.Context, t Target) (runtime string, err error) {
	found, err := findNodes(ctx, t.Client, 1)
	if len(found.runtimes) > 0 {
		runtime = found.runtimes[0]
	}
	switch {
	case slices.Contains(t.Supported, v1alpha1.Node):
		return runtime, nil
	case err != nil:
		return runtime, err
	case runtime != "":
		return runtime, probePod(ctx, t, v1alpha1.Node, "")
	case found.simulator != "":
		return "", skipReason{text: fmt.Sprintf("no node runs containers: %s simulates the nodes", found.simulator)}
	case len(found.systems) > 0:
		return "", skipReason{text: fmt.Sprintf("no Linux node is Ready (nodes in the cluster: %d, %s)", found.seen, strings.Join(found.systems, ", "))}
	}
	return "", skipReason{text: fmt.Sprintf("no node is Ready (nodes in the cluster: %d)", found.seen)}
}

// probeTwoNodes looks for two Ready nodes on which pods can be scheduled, and returns the second one.
func probeTwoNodes(ctx context.Context, t Target) (second string, err error) {
	found, err := findNodes(ctx, t.Client, 2)
	if err != nil {
		return "", err
	}
	if len(found.names) < 2 {
		return "", skipReason{text: fmt.Sprintf("two schedulable nodes that are Ready are needed, and there are %d (nodes in the cluster: %d)",
			len(found.names), found.seen)}
	}
	for _, name := range found.names[:2] {
		if err := probePod(ctx, t, v1alpha1.TwoNodes, name); err != nil {
			return found.names[1], err
		}
	}
	return found.names[1], nil
}

// errNoNodes is the result of probes on a server without the resource nodes.
var errNoNodes = skipReason{text: client.NotServed(corev1.SchemeGroupVersion.WithKind("Node"))}

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

// findNodes lists nodes until enough of them are Ready. More than one must also be schedulable.
func findNodes(ctx context.Context, with *client.Client, enough int) (foundNodes, error) {
	found := foundNodes{}
	pages := 0
	for page, response := range with.Pages(ctx, client.Nodes, url.Values{"limit": {maxParallelNodes}}) {
		switch pages++; {
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
		if pages == nodePages {
			break
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
