package definitions

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/crd"
)

// To delete the definition of a kind deletes all of the kind in the cluster. What follows does so only where that is nothing of
// anybody else: first a policy keeps everybody else from creating more, then it is looked whether there is any, and only then is
// the definition deleted. A copy of it that the run has kept before brings it back always (see Environment.Teardown).

const (
	// reservedEverywhere is within what time each API server of several follows a policy that one follows: they look for new
	// ones once a second.
	reservedEverywhere = 3 * time.Second
	// policyPolling is how often a request is repeated until a policy applies.
	policyPolling = 50 * time.Millisecond
	// definitionPolling is how often a definition is looked at, and whether a kind can be created again.
	definitionPolling = 100 * time.Millisecond
	// definitionReturns bounds how long it may take until a definition is gone, once what holds its objects is taken off, and
	// there again.
	definitionReturns = time.Minute
	// controllerNotices bounds how long a controller may take to learn that its kind is there again: client-go looks for one
	// that went every 30 s or so at last.
	controllerNotices = time.Minute
)

// Delete deletes the custom resource definition that an object's kind is from; the end of the spec defines it again.
// The spec is skipped where there is none, and where others have objects of the kind, which would go with it.
func Delete(ctx context.Context, c *framework.Cluster, object *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	collection, err := c.Session().Harness.CollectionOf(object)
	if err != nil {
		c.Check(ctx, framework.Response{Request: "use " + object.GetKind(), Err: err})
	}
	named := &framework.Object{}
	named.SetGroupVersionKind(crd.Kind)
	named.SetName(collection.Resource.GroupResource().String())
	read := c.TryGet(ctx, named)
	if apierrors.IsNotFound(read.Err) {
		ginkgo.Skip(fmt.Sprintf("%s is not from a CustomResourceDefinition", object.GetKind()))
	}
	found := framework.Require(read).Object
	reserve(ctx, c, collection, object)
	mustBeUnused(ctx, c, collection)
	framework.Require(c.Check(ctx, crd.Keep(ctx, c.Session().Harness, found, c.Session().Namespace, c.Labels())))
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { defineAgain(ctx, c, collection, object) })
	if err := c.Session().Harness.Except(found); err != nil {
		c.Check(ctx, framework.Response{Request: "use " + found.GetKind(), Err: err})
	}
	c.Delete(ctx, found, framework.IfUID(found.GetUID()))
	return found
}

// reserve has only the run create objects of a resource, until the spec ends, and waits until the API server follows that.
func reserve(ctx context.Context, c *framework.Cluster, collection client.Collection, object *framework.Object) {
	ginkgo.GinkgoHelper()
	others := newOf(c, object)
	others.SetLabels(nil)
	policy := c.Create(ctx, fixtures.ReservingPolicy("reserved", collection.Resource.GroupResource(), client.RunLabel, c.Session().Run))
	c.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("reserved"), framework.WithField(policy.GetName(), "spec", "policyName"))
	gomega.Eventually(ctx, func() error {
		return c.Session().Harness.DryRunCreate(ctx, others).Err
	}).WithPolling(policyPolling).Should(gomega.MatchError(gomega.ContainSubstring(fixtures.Reserved)), "the API server follows a policy")
	select {
	case <-time.After(c.Session().Slowed(reservedEverywhere)):
	case <-ctx.Done():
		ginkgo.Fail(fmt.Sprintf("interrupted while API servers learn of a policy: %v", context.Cause(ctx)))
	}
}

// mustBeUnused skips the spec where there is anything of a resource that the run has not made.
func mustBeUnused(ctx context.Context, c *framework.Cluster, collection client.Collection) {
	ginkgo.GinkgoHelper()
	collection.Namespace = "" // in all of them
	others, _, response := c.Session().Harness.Page(ctx, collection, url.Values{
		"labelSelector": {client.RunLabel + "!=" + c.Session().Run}, "limit": {"1"},
	})
	framework.Require(c.Check(ctx, response))
	if len(others) > 0 {
		ginkgo.Skip(fmt.Sprintf("others have %s in the cluster, such as %q in namespace %q, which would go with the definition",
			collection.Resource.GroupResource(), others[0].GetName(), others[0].GetNamespace()))
	}
}

// defineAgain defines a kind again as it was, and waits until it is served and its controller has learned of that.
func defineAgain(ctx context.Context, c *framework.Cluster, collection client.Collection, like *framework.Object) {
	ginkgo.GinkgoHelper()
	// Its watches end with the definition, and where they would go on is before what is there then.
	c.Session().Watches.Leave(func(other client.Collection) bool { return other.Resource == collection.Resource })
	restoring, cancel := context.WithTimeout(ctx, c.AtLeast(definitionReturns))
	defer cancel()
	if err := crd.RestoreAll(restoring, c.Session().Harness, c.Session().Namespace, c.Session().Run); err != nil {
		c.Check(ctx, framework.Response{Request: "restore " + collection.Resource.GroupResource().String(), Err: err})
	}
	again := newOf(c, like)
	gomega.Eventually(ctx, func() error {
		return c.Session().Harness.DryRunCreate(ctx, again).Err
	}).WithPolling(definitionPolling).Should(gomega.Succeed(), "the kind is served again")
	created := framework.Require(c.Check(ctx, c.Session().Harness.Create(ctx, again))).Object
	// Whether it does is no part of what is tested; what is tested next is to find it at work.
	_ = wait.PollUntilContextTimeout(ctx, definitionPolling, c.AtLeast(controllerNotices), true, func(ctx context.Context) (bool, error) {
		read := c.Session().Harness.Get(ctx, created)
		return read.Err == nil && read.Object.GetResourceVersion() != created.GetResourceVersion(), nil
	})
}

// newOf is another object like one that the spec has made, under a name of its own.
func newOf(c *framework.Cluster, like *framework.Object) *framework.Object {
	another := framework.Canary(like)
	another.SetNamespace(like.GetNamespace())
	another.SetName(c.FreeName("again-" + rand.String(6)))
	another.SetLabels(c.Labels())
	return another
}
