package framework

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// lostNode returns why the pods of a failed spec, in their last states, show nothing about the cluster: the node of one is not Ready, or no
// node is. It is empty otherwise, and for specs that stop the kubelet themselves.
func (c *Cluster) lostNode(ctx context.Context, last map[types.UID]*Object) string {
	if !c.runsContainers || c.disruptive {
		return ""
	}
	for _, pod := range last {
		if pod.GetKind() != "Pod" {
			continue
		}
		if reason := whyPending(pod); reason != "" {
			return reason
		}
		name, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		if name == "" {
			continue
		}
		if node := c.client.Get(ctx, fixtures.Node(name)); node.Err == nil {
			if reason := whyNotReady(node.Object); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// whyPending returns the scheduler's message about a pod if the nodes have the taint of nodes that are not Ready.
func whyPending(pod *Object) string {
	scheduled := meta.FindStatusCondition(describe.Conditions(pod), string(corev1.PodScheduled))
	if scheduled == nil || !strings.Contains(scheduled.Message, corev1.TaintNodeUnreachable) && !strings.Contains(scheduled.Message, corev1.TaintNodeNotReady) {
		return ""
	}
	return fmt.Sprintf("no node takes pod %q: %s", pod.GetName(), scheduled.Message)
}

func whyNotReady(node *Object) string {
	ready := meta.FindStatusCondition(describe.Conditions(node), string(corev1.NodeReady))
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("node %q is not Ready: %s", node.GetName(), ready.Message)
}
