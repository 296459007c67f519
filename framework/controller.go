package framework

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/controller"
)

const (
	// controllerStops bounds how long the pods of a controller may take to end: twice the grace that pods have by default.
	controllerStops = time.Minute
	// controllerStarts bounds how long a controller may take to be at work again: an image may have to be pulled.
	controllerStarts = 2 * time.Minute
	// controllerTakesOver is within what time a controller that was started does what is left to do: one that elects a leader
	// waits for the end of the former one's lease, of 15 s by default, and looks for it again some seconds later.
	controllerTakesOver = time.Minute
	// controllerPolling is how often it is looked whether a controller is at work.
	controllerPolling = 100 * time.Millisecond
)

// StopController scales the controller of the resource that is judged to 0 and waits until none of its pods is left; the end of
// the spec scales it back.
func (c *Cluster) StopController(ctx context.Context) {
	ginkgo.GinkgoHelper()
	which := c.session.Controller
	if c.session.Shared && which.Namespace != c.session.Namespace {
		ginkgo.Skip(c.session.Outside(fmt.Sprintf("scale %s to 0", which)))
	}
	read := c.must(c.judge(ctx, c.session.Harness.Get(ctx, which.Object()))).Object
	pods, err := controller.Pods(read)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { c.StartController(ctx) })
	c.must(c.judge(ctx, controller.Stop(ctx, c.client, which, c.session.Run)))
	collection := client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: which.Namespace}
	gomega.Eventually(ctx, func() ([]*Object, error) {
		left, _, response := c.session.Harness.Page(ctx, collection, url.Values{"labelSelector": {pods}})
		return left, c.judge(ctx, response).Err
	}).WithTimeout(c.AtLeast(controllerStops)).WithPolling(controllerPolling).Should(gomega.BeEmpty(), "the pods of the controller end")
}

// TakesOver is how long a spec waits for what a controller has left to do that was started. Where the user says how long to
// wait, that counts.
func (c *Cluster) TakesOver() time.Duration {
	if c.session.FixedWait {
		return c.session.WaitTimeout
	}
	return c.AtLeast(controllerTakesOver)
}

// StartController scales the controller back and waits until it is at work again. One that was not stopped is left alone.
func (c *Cluster) StartController(ctx context.Context) {
	ginkgo.GinkgoHelper()
	which := c.session.Controller
	c.must(c.judge(ctx, controller.Start(ctx, c.client, which, c.session.Run)))
	gomega.Eventually(ctx, func() error {
		response := c.session.Harness.Get(ctx, which.Object())
		if response.Err != nil {
			return response.Err
		}
		return controller.AtWork(response.Object)
	}).WithTimeout(c.AtLeast(controllerStarts)).WithPolling(controllerPolling).Should(
		gomega.Or(gomega.Succeed(), gomega.MatchError(apierrors.IsNotFound, "is gone")), "the controller is at work again")
}
