// Package nodes has static pods, a barrier for the knowledge of a kubelet, and the tolerance for delays on a busy node.
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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// Tolerance is the accepted delay on a busy node: several times the 2 s to 6 s measured with twice as many busy loops as processors, and
// less than the default grace period of 30 s.
const Tolerance = 20 * time.Second

// Of returns the name of a pod's node.
func Of(pod *framework.Object) string { return describe.Pod(pod).Spec.NodeName }

// AwaitKubelet is the barrier behind every "the kubelet knows". It binds a pod to a node and waits until the node's kubelet has written its
// start time. A kubelet reads the events of its pods in order, so by then it has processed all earlier ones.
func AwaitKubelet(ctx context.Context, c *framework.Cluster, node string) {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, fixtures.NodePod("canary", fixtures.Container{Name: "main", OnTerm: "exit 0"}), framework.OnNode(node), framework.WithLabel(client.CanaryLabel, "true"))
	gomega.Eventually(ctx, c.History(pod)).Should(framework.HaveObserved(framework.Matching(pod, HaveStartTime())), "the kubelet must start the canary of a barrier")
}

// HaveStartTime matches a pod that its kubelet has begun to start.
func HaveStartTime() types.GomegaMatcher {
	return framework.Property("have a startTime", func(object *framework.Object) bool { return describe.Pod(object).Status.StartTime != nil })
}

// RunStaticPod gives a kubelet a static pod until the spec ends: that of the spare node for a disruptive spec, else the first. It creates the mirror pod
// (AwaitMirrorPods). The spec is skipped when that is not possible.
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
	err = component.PutStaticPod(ctx, c.Session().Components, c.SpareNode(), pod.GetName(), content)
	if errors.Is(err, component.ErrUnsupported) {
		ginkgo.Skip(fmt.Sprintf("running a static pod is %v", component.ErrUnsupported))
	}
	require(ctx, c, "run a static pod", err)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { EndStaticPod(ctx, c, pod) })
	return pod
}

// EndStaticPod takes a static pod from the kubelet. It does nothing for one that was taken before.
func EndStaticPod(ctx context.Context, c *framework.Cluster, static *framework.Object) {
	ginkgo.GinkgoHelper()
	require(ctx, c, "remove a static pod", component.RemoveStaticPod(ctx, c.Session().Components, static.GetName()))
}

// mirrorReturns limits how long a deleted mirror pod may be missing. Kubernetes 1.37 recreates it at the next regular sync of the static
// pod, 1 to 1.5 sync periods after the last one, a minute each by default (kubernetes#139522; workerResyncIntervalJitterFactor in
// pkg/kubelet). Earlier versions recreate it at once.
const mirrorReturns = 4 * time.Minute

// AwaitMirrorPods waits until this many mirror pods of a static pod were created, and returns them in order.
func AwaitMirrorPods(ctx context.Context, c *framework.Cluster, static *framework.Object, count int) []*framework.Object {
	ginkgo.GinkgoHelper()
	var mirrors []*framework.Object
	gomega.Eventually(ctx, func() (_ []*framework.Object, err error) {
		mirrors, err = mirrorStates(c, static, watch.Added)
		return mirrors, err
	}).WithTimeout(c.Session().AtLeast(mirrorReturns)).Should(framework.HaveCount(count, "mirror pods of "+client.Title(static)))
	return mirrors
}

// MirrorPods returns the mirror pods of a static pod that have been created so far, in order.
func MirrorPods(ctx context.Context, c *framework.Cluster, static *framework.Object) []*framework.Object {
	ginkgo.GinkgoHelper()
	mirrors, err := mirrorStates(c, static, watch.Added)
	require(ctx, c, "read the history of mirror pods", err)
	return mirrors
}

// AwaitMirrorPod waits until a mirror pod of a static pod is modified so that it matches.
func AwaitMirrorPod(ctx context.Context, c *framework.Cluster, static *framework.Object, matcher types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() ([]*framework.Object, error) {
		return mirrorStates(c, static, watch.Modified)
	}).WithTimeout(c.Session().AtLeast(mirrorReturns)).Should(gomega.ContainElement(matcher), "states of the mirror pods of "+client.Title(static))
}

// mirrorStates returns the mirror pods of a static pod as in the events of a type.
func mirrorStates(c *framework.Cluster, static *framework.Object, of watch.EventType) (mirrors []*framework.Object, err error) {
	events, err := c.Session().Watches.Journal.Read(func(event journal.Event) bool {
		_, mirror := event.Object.GetAnnotations()[corev1.MirrorPodAnnotationKey]
		return event.Type == of && mirror && strings.HasPrefix(event.Object.GetName(), static.GetName()+"-")
	})
	for _, event := range events {
		mirrors = append(mirrors, event.Object)
	}
	return mirrors, err
}

// require ends the spec as errored after an error.
func require(ctx context.Context, c *framework.Cluster, what string, err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		c.Check(ctx, framework.Response{Request: what, Err: err})
	}
}
