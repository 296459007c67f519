// Package components stops and starts components of a cluster that was made for the run.
package components

import (
	"context"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// The components that a spec can stop.
const (
	// Kubelet is the kubelet of the cluster's node.
	Kubelet = component.Kubelet
	// ControllerManager is the kube-controller-manager, of which the garbage collector is a part.
	ControllerManager = component.ControllerManager
)

// Stop stops a component of the cluster; the end of the spec starts it again. The spec is skipped where that is not possible.
func Stop(ctx context.Context, cluster *framework.Cluster, which component.Component) {
	ginkgo.GinkgoHelper()
	err := component.Stop(ctx, cluster.Session().Components, which)
	if errors.Is(err, component.ErrNoSwitch) {
		ginkgo.Skip(fmt.Sprintf("stopping the %s is %v", which, component.ErrNoSwitch))
	}
	if err != nil {
		cluster.Check(ctx, framework.Response{Request: fmt.Sprintf("stop the %s", which), Err: err})
	}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { Start(ctx, cluster, which) })
}

// Start starts a component that was stopped. One that runs already is left alone.
func Start(ctx context.Context, cluster *framework.Cluster, which component.Component) {
	ginkgo.GinkgoHelper()
	if err := component.Start(ctx, cluster.Session().Components, which); err != nil {
		cluster.Check(ctx, framework.Response{Request: fmt.Sprintf("start the %s", which), Err: err})
	}
}
