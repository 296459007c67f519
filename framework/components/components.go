// Package components stops and starts components of a cluster that was created for the run.
package components

import (
	"context"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// ControllerManager is the kube-controller-manager, which includes the garbage collector.
const ControllerManager = component.ControllerManager

// AnyKubelet and AnyRuntime are the kubelet and the container runtime of whatever node, for WhileRunning and BeforeStop.
const (
	AnyKubelet = component.Kubelet
	AnyRuntime = component.Runtime
)

// Kubelet is the kubelet of a node.
func Kubelet(node string) component.Component { return component.Kubelet.On(node) }

// Runtime is the container runtime of a node.
func Runtime(node string) component.Component { return component.Runtime.On(node) }

// Machine is the machine of a node, which is lost with its disk when it is stopped.
func Machine(node string) component.Component { return component.Machine.On(node) }

// InService is the use of a node. Stopping it adds the taint node.kubernetes.io/out-of-service.
func InService(node string) component.Component { return component.InService.On(node) }

// WhileRunning calls a function that needs a component, which no other spec stops meanwhile, on whatever node: a container that is starting does not
// survive that.
func WhileRunning(ctx context.Context, cluster *framework.Cluster, which component.Component, do func()) {
	ginkgo.GinkgoHelper()
	end, err := component.KeepRunning(ctx, cluster.Session().Components, which)
	switch {
	case errors.Is(err, component.ErrUnsupported): // there is nothing that could stop it
	case err != nil:
		cluster.Check(ctx, framework.Response{Request: fmt.Sprintf("keep the %s running", which), Err: err})
	default:
		defer end()
	}
	do()
}

// BeforeStop waits until no other spec needs a component running, so that Stop does not wait until the returned function is called, or the spec ends.
func BeforeStop(ctx context.Context, cluster *framework.Cluster, which component.Component) (end func()) {
	ginkgo.GinkgoHelper()
	end, err := component.WillStop(ctx, cluster.Session().Components, which)
	switch {
	case errors.Is(err, component.ErrUnsupported): // Stop skips the spec
		return func() {}
	case err != nil:
		cluster.Check(ctx, framework.Response{Request: fmt.Sprintf("get ready to stop the %s", which), Err: err})
	}
	ginkgo.DeferCleanup(end)
	return end
}

// Stop stops a component of the cluster until the returned function is called, or the spec ends. Where several specs stop it, it starts when none of
// them needs it stopped. The spec is skipped when that is not possible.
func Stop(ctx context.Context, cluster *framework.Cluster, which component.Component) (start func(context.Context)) {
	ginkgo.GinkgoHelper()
	if node, spare := which.Node(), cluster.Session().SpareNode; node != "" && spare != "" && node != spare {
		ginkgo.Skip(fmt.Sprintf("the pod runs on node %s, which other behaviors use at the same time, and not on node %s", node, spare))
	}
	release, err := component.Hold(ctx, cluster.Session().Components, which)
	if errors.Is(err, component.ErrUnsupported) {
		ginkgo.Skip(fmt.Sprintf("stopping the %s is %v", which, component.ErrUnsupported))
	}
	if err != nil {
		cluster.Check(ctx, framework.Response{Request: fmt.Sprintf("stop the %s", which), Err: err})
	}
	cluster.Session().Recorder.Component(string(which), "STOPPED")
	start = func(ctx context.Context) {
		ginkgo.GinkgoHelper()
		if release == nil {
			return
		}
		if err := release(ctx); err != nil {
			cluster.Check(ctx, framework.Response{Request: fmt.Sprintf("start the %s", which), Err: err})
		}
		release = nil
		cluster.Session().Recorder.Component(string(which), "STARTED")
	}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { start(ctx) })
	return start
}
