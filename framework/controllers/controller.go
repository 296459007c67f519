// Package controllers is what specs need of the controller of the resource under test (--controller): what it makes for an object, and
// to stop and start it.
package controllers

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/controller"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
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

// Stop stops the controller of the resource under test, and returns what starts it again, at the latest at the end of the spec. A
// Deployment is scaled to 0, and its pods are waited for.
func Stop(ctx context.Context, c *framework.Cluster) (start func(context.Context)) {
	ginkgo.GinkgoHelper()
	which := c.Session().Controller
	if which.IsDeployment() {
		return scaleDown(ctx, c, which)
	}
	limited, cancel := context.WithTimeout(ctx, c.AtLeast(controllerStops))
	defer cancel()
	started, err := controller.Pause(limited, which)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	ginkgo.DeferCleanup(func() { _ = started() })
	return func(context.Context) { _ = started() }
}

// scaleDown scales a controller's Deployment to 0 and waits until none of its pods is left.
func scaleDown(ctx context.Context, c *framework.Cluster, which session.Controller) (start func(context.Context)) {
	ginkgo.GinkgoHelper()
	if c.Session().Shared && which.Namespace != c.Session().Namespace {
		ginkgo.Skip(c.Session().Outside(fmt.Sprintf("scale %s to 0", which)))
	}
	read := framework.Require(c.Check(ctx, c.Session().Harness.Get(ctx, which.Object()))).Object
	pods, err := controller.Pods(read)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	start = func(ctx context.Context) { scaleUp(ctx, c, which) }
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { start(ctx) })
	framework.Require(c.Check(ctx, controller.Stop(ctx, c.Session().Client, which, c.Session().Run)))
	collection := client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: which.Namespace}
	gomega.Eventually(ctx, func() ([]*framework.Object, error) {
		left, _, response := c.Session().Harness.Page(ctx, collection, url.Values{"labelSelector": {pods}})
		return left, c.Check(ctx, response).Err
	}).WithTimeout(c.AtLeast(controllerStops)).WithPolling(controllerPolling).Should(gomega.BeEmpty(), "the pods of the controller end")
	return start
}

// Touch writes an object without changing anything that matters to its controller.
func Touch(ctx context.Context, c *framework.Cluster, object *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	note := map[string]any{framework.Domain + "/touched": rand.String(6)}
	return c.Patch(ctx, object, types.MergePatchType, map[string]any{"metadata": map[string]any{"annotations": note}}).Object
}

// TakesOver is how long a spec waits for what a controller has left to do that was started. Where the user says how long to
// wait, that counts.
func TakesOver(c *framework.Cluster) time.Duration {
	if c.Session().FixedWait {
		return c.Session().WaitTimeout
	}
	return c.AtLeast(controllerTakesOver)
}

// scaleUp scales a controller's Deployment back and waits until it is at work again. One that was not stopped is left alone.
func scaleUp(ctx context.Context, c *framework.Cluster, which session.Controller) {
	ginkgo.GinkgoHelper()
	framework.Require(c.Check(ctx, controller.Start(ctx, c.Session().Client, which, c.Session().Run)))
	gomega.Eventually(ctx, func() error {
		response := c.Session().Harness.Get(ctx, which.Object())
		if response.Err != nil {
			return response.Err
		}
		return controller.AtWork(response.Object)
	}).WithTimeout(c.AtLeast(controllerStarts)).WithPolling(controllerPolling).Should(
		gomega.Or(gomega.Succeed(), gomega.MatchError(apierrors.IsNotFound, "is gone")), "the controller is at work again")
}
