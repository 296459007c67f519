package framework

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// lostNode returns why the pods of a failed spec, in their last states, show nothing about the cluster: the node of one is not Ready, or it
// has none because no node is. It is empty otherwise, and for specs that stop the kubelet themselves.
func (c *Cluster) lostNode(ctx context.Context, last map[types.UID]*Object) string {
	if !c.runsContainers || c.disruptive {
		return ""
	}
	for _, pod := range last {
		if pod.GetKind() != "Pod" {
			continue
		}
		name, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		if name == "" {
			return c.noneReady(ctx)
		}
		if node := c.client.Get(ctx, fixtures.Node(name)); node.Err == nil && !ready(node.Object) {
			return notReady(node.Object)
		}
	}
	return ""
}

// noneReady names the first node if no node of the cluster is Ready. It is empty otherwise, also where nodes cannot be listed.
func (c *Cluster) noneReady(ctx context.Context) string {
	nodes, response := c.client.List(ctx, client.Nodes, "")
	if response.Err != nil || len(nodes) == 0 || slices.ContainsFunc(nodes, ready) {
		return ""
	}
	return "no node is Ready: " + notReady(nodes[0])
}

func ready(node *Object) bool {
	return meta.IsStatusConditionTrue(describe.Conditions(node), string(corev1.NodeReady))
}

// notReady describes a node that is not Ready.
func notReady(node *Object) string {
	reason := "its kubelet has not reported yet"
	if condition := meta.FindStatusCondition(describe.Conditions(node), string(corev1.NodeReady)); condition != nil {
		reason = condition.Message
	}
	return fmt.Sprintf("node %q is not Ready: %s", node.GetName(), reason)
}
