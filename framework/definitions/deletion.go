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

// Deleting a definition deletes all objects of its kind in the cluster. Delete does so only if the run created all of them: first a policy
// prevents others from creating more, then it checks that there are none, and then it deletes the definition. The run restores it from a
// copy that it stored before (see Environment.Teardown).

const (
	// reservedEverywhere is the time in which all API servers enforce a policy that one enforces: they read new policies once a second.
	reservedEverywhere = 3 * time.Second
	// policyPolling is the interval for repeating a request until a policy applies.
	policyPolling = 50 * time.Millisecond
	// definitionPolling is the interval for reading a definition, and for checking whether its kind is served again.
	definitionPolling = 100 * time.Millisecond
	// definitionReturns limits how long the deletion and the restoration of a definition may take, without finalizers of its objects.
	definitionReturns = time.Minute
	// controllerNotices limits how long a controller may take to watch its kind again. The longest backoff of client-go is about 30 s.
	controllerNotices = time.Minute
)

// Delete deletes the CustomResourceDefinition of an object's kind until the spec ends. The spec is skipped when there is none, and when
// there are objects of the kind that the run did not create.
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
		ginkgo.Skip(fmt.Sprintf("%s is not defined by a CustomResourceDefinition", object.GetKind()))
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

// reserve prevents others from creating objects of a resource until the spec ends, and waits until the API server enforces that.
func reserve(ctx context.Context, c *framework.Cluster, collection client.Collection, object *framework.Object) {
	ginkgo.GinkgoHelper()
	others := newOf(c, object)
	others.SetLabels(nil)
	policy := c.Create(ctx, fixtures.ReservingPolicy("reserved", collection.Resource.GroupResource(), client.RunLabel, c.Session().Run))
	c.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("reserved"), framework.WithField(policy.GetName(), "spec", "policyName"))
	gomega.Eventually(ctx, func() error {
		return c.Session().Harness.DryRunCreate(ctx, others).Err
	}).WithPolling(policyPolling).Should(gomega.MatchError(gomega.ContainSubstring(fixtures.Reserved)), "the API server must enforce a policy")
	select {
	case <-time.After(c.Session().Slowed(reservedEverywhere)):
	case <-ctx.Done():
		ginkgo.Fail(fmt.Sprintf("interrupted while waiting for a policy to take effect: %v", context.Cause(ctx)))
	}
}

// mustBeUnused skips the spec when there are objects of a resource that the run did not create.
func mustBeUnused(ctx context.Context, c *framework.Cluster, collection client.Collection) {
	ginkgo.GinkgoHelper()
	collection.Namespace = "" // all namespaces
	others, _, response := c.Session().Harness.Page(ctx, collection, url.Values{
		"labelSelector": {client.RunLabel + "!=" + c.Session().Run}, "limit": {"1"},
	})
	framework.Require(c.Check(ctx, response))
	if len(others) > 0 {
		ginkgo.Skip(fmt.Sprintf("the cluster has %s that this run did not create, such as %q in namespace %q; deleting the definition would delete them",
			collection.Resource.GroupResource(), others[0].GetName(), others[0].GetNamespace()))
	}
}

// defineAgain restores a definition, and waits until its kind is served and its controller has noticed it.
func defineAgain(ctx context.Context, c *framework.Cluster, collection client.Collection, like *framework.Object) {
	ginkgo.GinkgoHelper()
	// Its watches end with the definition and cannot be resumed.
	c.Session().Watches.Leave(func(other client.Collection) bool { return other.Resource == collection.Resource })
	restoring, cancel := context.WithTimeout(ctx, c.Session().AtLeast(definitionReturns))
	defer cancel()
	if err := crd.RestoreAll(restoring, c.Session().Harness, c.Session().Namespace, c.Session().Run); err != nil {
		c.Check(ctx, framework.Response{Request: "restore " + collection.Resource.GroupResource().String(), Err: err})
	}
	again := newOf(c, like)
	gomega.Eventually(ctx, func() error {
		return c.Session().Harness.DryRunCreate(ctx, again).Err
	}).WithPolling(definitionPolling).Should(gomega.Succeed(), "the kind must be served again")
	created := framework.Require(c.Check(ctx, c.Session().Harness.Create(ctx, again))).Object
	// This is not part of the test, and the next step finds out whether the controller works.
	_ = wait.PollUntilContextTimeout(ctx, definitionPolling, c.Session().AtLeast(controllerNotices), true, func(ctx context.Context) (bool, error) {
		read := c.Session().Harness.Get(ctx, created)
		return read.Err == nil && read.Object.GetResourceVersion() != created.GetResourceVersion(), nil
	})
}

// newOf returns another object like one of the spec, with its own name.
func newOf(c *framework.Cluster, like *framework.Object) *framework.Object {
	another := framework.Canary(like)
	another.SetNamespace(like.GetNamespace())
	another.SetName(c.FreeName("again-" + rand.String(6)))
	another.SetLabels(c.Labels())
	return another
}
