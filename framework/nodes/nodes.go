// Package nodes is what specs need of nodes: pods that a kubelet runs from a file, a barrier for what a kubelet knows, and how late a
// busy node may be.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// Tolerance is how much later than its time something may happen on a node that is busy: several times the 2 s to 6 s that were seen
// with twice as many busy loops as processors, and too little to hide a node that gives every container 30 s.
const Tolerance = 20 * time.Second

// Of is the name of the node that runs a pod.
func Of(pod *framework.Object) string { return describe.Pod(pod).Spec.NodeName }

// AwaitKubelet is the barrier behind every "the kubelet knows": it binds a pod to a node and waits until the node's kubelet
// has written down that it started with it. A kubelet reads the events of its pods in order, so it has then seen all that
// happened to them before this call.
func AwaitKubelet(ctx context.Context, c *framework.Cluster, node string) {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, fixtures.NodePod("canary", fixtures.Container{Name: "main", OnTerm: "exit 0"}), framework.OnNode(node), framework.WithLabel(client.CanaryLabel, "true"))
	gomega.Eventually(ctx, c.History(pod)).Should(framework.HaveObserved(framework.Matching(pod, haveStarted())), "the kubelet must start the canary of a barrier")
}

// haveStarted matches a pod that its kubelet has seen.
func haveStarted() types.GomegaMatcher {
	return framework.Property("have a startTime", func(object *framework.Object) bool { return describe.Pod(object).Status.StartTime != nil })
}

// RunStaticPod gives the kubelet a static pod, until the spec ends. The kubelet makes its mirror pod (AwaitMirrorPods). The
// spec is skipped where that is not possible.
func RunStaticPod(ctx context.Context, c *framework.Cluster, manifest *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	pod, err := c.Session().Client.Completed(c.Prepare(ctx, manifest))
	require(ctx, c, "prepare a static pod", err)
	unstructured.RemoveNestedField(pod.Object, "spec", "imagePullSecrets") // a static pod may not refer to secrets
	c.Watch(ctx, manifest)
	content, err := pod.MarshalJSON()
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	err = component.PutStaticPod(ctx, c.Session().Components, pod.GetName(), content)
	if errors.Is(err, component.ErrNoSwitch) {
		ginkgo.Skip(fmt.Sprintf("running a static pod is %v", component.ErrNoSwitch))
	}
	require(ctx, c, "run a static pod", err)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		require(ctx, c, "remove a static pod", component.RemoveStaticPod(ctx, c.Session().Components, pod.GetName()))
	})
	return pod
}

// mirrorReturns is how long a deleted mirror pod may stay away. Kubernetes 1.37 recreates it with the next regular sync of
// the static pod, which is 1 to 1.5 sync periods after the last one, a minute each by default (kubernetes#139522;
// workerResyncIntervalJitterFactor in pkg/kubelet). Earlier versions recreate it at once.
const mirrorReturns = 2 * time.Minute

// AwaitMirrorPods waits until this many mirror pods of a static pod were seen to be created, and returns them as they came.
func AwaitMirrorPods(ctx context.Context, c *framework.Cluster, static *framework.Object, count int) []*framework.Object {
	ginkgo.GinkgoHelper()
	var mirrors []*framework.Object
	gomega.Eventually(ctx, func() ([]*framework.Object, error) {
		events, err := c.Session().Watches.Journal.Read(func(event journal.Event) bool {
			_, mirror := event.Object.GetAnnotations()[corev1.MirrorPodAnnotationKey]
			return event.Type == watch.Added && mirror && strings.HasPrefix(event.Object.GetName(), static.GetName()+"-")
		})
		mirrors = nil
		for _, event := range events {
			mirrors = append(mirrors, event.Object)
		}
		return mirrors, err
	}).WithTimeout(c.AtLeast(mirrorReturns)).Should(framework.HaveCount(count, "mirror pods of "+client.Title(static)))
	return mirrors
}

// require ends the spec as an error of the run where something could not be done.
func require(ctx context.Context, c *framework.Cluster, what string, err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		c.Check(ctx, framework.Response{Request: what, Err: err})
	}
}
