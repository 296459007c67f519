package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"

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

func (c *Cluster) mustSwitch(err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		c.runError = err.Error()
		ginkgo.Fail(c.runError)
	}
}
