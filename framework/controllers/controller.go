// Package controllers stops and starts the controller of the resource under test (--controller), and records what it creates.
package controllers

import (
	"cmp"
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
	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

const (
	// stopTimeout limits how long the pods of a controller may take to end: twice the default grace period.
	stopTimeout = time.Minute
	// startTimeout limits how long a controller may take to start, including pulling an image.
	startTimeout = 2 * time.Minute
	// takeoverTimeout is the time in which a started controller must do pending work. With leader election it waits for the former
	// leader's lease, 15 s by default, and retries some seconds later.
	takeoverTimeout = time.Minute
	// controllerPolling is the interval for checking whether a controller runs.
	controllerPolling = 100 * time.Millisecond
)

// Stop stops the controller of the resource under test, and returns a function that starts it again, which the end of the spec calls too. A
// Deployment is scaled to 0, and Stop waits for its pods to end.
func Stop(ctx context.Context, c *framework.Cluster) (start func(context.Context)) {
	ginkgo.GinkgoHelper()
	which := c.Session().Controller
	if which.IsDeployment() {
		return scaleDown(ctx, c, which)
	}
	limited, cancel := context.WithTimeout(ctx, c.Session().AtLeast(stopTimeout))
	defer cancel()
	started, err := controller.Pause(limited, which)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	ginkgo.DeferCleanup(func() { _ = started() })
	return func(context.Context) { _ = started() }
}

// scaleDown scales a controller's Deployment to 0 and waits until it has no pods.
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
	}).WithTimeout(c.Session().AtLeast(stopTimeout)).WithPolling(controllerPolling).Should(gomega.BeEmpty(), "the pods of the controller must terminate")
	return start
}

// Touch writes an object without a change that matters to its controller.
func Touch(ctx context.Context, c *framework.Cluster, object *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	note := map[string]any{framework.Domain + "/touched": rand.String(6)}
	return c.Patch(ctx, object, types.MergePatchType, map[string]any{"metadata": map[string]any{"annotations": note}}).Object
}

// TakeoverTimeout is the timeout for pending work of a controller that was started. A timeout that the user set takes precedence.
func TakeoverTimeout(c *framework.Cluster) time.Duration {
	return cmp.Or(c.Session().WaitTimeout, c.Session().AtLeast(takeoverTimeout))
}

// scaleUp scales a controller's Deployment back and waits until it runs. It has no effect on one that was not stopped.
func scaleUp(ctx context.Context, c *framework.Cluster, which session.Controller) {
	ginkgo.GinkgoHelper()
	framework.Require(c.Check(ctx, controller.Start(ctx, c.Session().Client, which, c.Session().Run)))
	gomega.Eventually(ctx, func() error {
		response := c.Session().Harness.Get(ctx, which.Object())
		if response.Err != nil {
			return response.Err
		}
		return controller.AtWork(response.Object)
	}).WithTimeout(c.Session().AtLeast(startTimeout)).WithPolling(controllerPolling).Should(
		gomega.Or(gomega.Succeed(), gomega.MatchError(apierrors.IsNotFound, "is gone")), "the controller must run again")
}
