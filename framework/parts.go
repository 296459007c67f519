package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// Kubelet is the kubelet of a local cluster's node, as a part that a spec can stop.
const Kubelet = component.Kubelet

// Stop stops a part of the cluster; the end of the spec starts it again. The spec is skipped where that is not possible.
func (c *Cluster) Stop(ctx context.Context, part component.Component) {
	ginkgo.GinkgoHelper()
	err := component.Stop(ctx, c.session.Control, part)
	if errors.Is(err, component.ErrNoSwitch) {
		ginkgo.Skip(fmt.Sprintf("stopping the %s is %v", part, component.ErrNoSwitch))
	}
	c.switched(err)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { c.Start(ctx, part) })
}

// Start starts a part that was stopped. One that runs already is left alone.
func (c *Cluster) Start(ctx context.Context, part component.Component) {
	ginkgo.GinkgoHelper()
	c.switched(component.Start(ctx, c.session.Control, part))
}

func (c *Cluster) switched(err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		c.runError = err.Error()
		ginkgo.Fail(c.runError)
	}
}
