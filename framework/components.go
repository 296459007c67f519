package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// The components of a local cluster that a spec can stop.
const (
	// Kubelet is the kubelet of its node.
	Kubelet = component.Kubelet
	// ControllerManager is its controller manager, of which the garbage collector is a part.
	ControllerManager = component.ControllerManager
)

// StopComponent stops a component of the cluster; the end of the spec starts it again. The spec is skipped where that is
// not possible.
func (c *Cluster) StopComponent(ctx context.Context, which component.Component) {
	ginkgo.GinkgoHelper()
	err := component.Stop(ctx, c.session.Components, which)
	if errors.Is(err, component.ErrNoSwitch) {
		ginkgo.Skip(fmt.Sprintf("stopping the %s is %v", which, component.ErrNoSwitch))
	}
	c.mustSwitch(err)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { c.StartComponent(ctx, which) })
}

// StartComponent starts a component that was stopped. One that runs already is left alone.
func (c *Cluster) StartComponent(ctx context.Context, which component.Component) {
	ginkgo.GinkgoHelper()
	c.mustSwitch(component.Start(ctx, c.session.Components, which))
}

// RunStaticPod gives the kubelet a static pod, until the spec ends. The kubelet makes its mirror pod (AwaitMirrorPods). The
// spec is skipped where that is not possible.
func (c *Cluster) RunStaticPod(ctx context.Context, manifest *Object) *Object {
	ginkgo.GinkgoHelper()
	pod, err := c.client.Completed(c.prepare(ctx, manifest, nil))
	c.mustSwitch(err)
	unstructured.RemoveNestedField(pod.Object, "spec", "imagePullSecrets") // a static pod may not refer to secrets
	c.watch(ctx, pod)
	content, err := pod.MarshalJSON()
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	err = component.PutStaticPod(ctx, c.session.Components, pod.GetName(), content)
	if errors.Is(err, component.ErrNoSwitch) {
		ginkgo.Skip(fmt.Sprintf("running a static pod is %v", component.ErrNoSwitch))
	}
	c.mustSwitch(err)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		c.mustSwitch(component.RemoveStaticPod(ctx, c.session.Components, pod.GetName()))
	})
	return pod
}

// mirrorReturns is how long a deleted mirror pod may stay away: Kubernetes 1.37 looks after it with the next regular
// sync of the static pod, after 60 to 90 seconds, others at once (kubernetes#139522; workerResyncIntervalJitterFactor
// in pkg/kubelet).
const mirrorReturns = 90 * time.Second

// AwaitMirrorPods waits until this many mirror pods of a static pod were seen to be created, and returns them as they came.
func (c *Cluster) AwaitMirrorPods(ctx context.Context, static *Object, count int) []*Object {
	ginkgo.GinkgoHelper()
	var mirrors []*Object
	gomega.Eventually(ctx, func() ([]*Object, error) {
		events, err := c.session.Watches.Journal.Read(func(event journal.Event) bool {
			_, mirror := event.Object.GetAnnotations()[corev1.MirrorPodAnnotationKey]
			return event.Type == watch.Added && mirror && strings.HasPrefix(event.Object.GetName(), static.GetName()+"-")
		})
		mirrors = nil
		for _, event := range events {
			mirrors = append(mirrors, event.Object)
		}
		return mirrors, err
	}).WithTimeout(c.AtLeast(mirrorReturns)).Should(gomega.HaveLen(count), "mirror pods of "+client.Title(static))
	return mirrors
}

func (c *Cluster) mustSwitch(err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		c.runError = err.Error()
		ginkgo.Fail(c.runError)
	}
}
