package definitions

import (
	"context"
	"errors"
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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
)

// Deleting a definition deletes all objects of its kind in the cluster, so it happens only on a cluster that was created for the run
// (framework.OwnCluster). Other specs of the run need the kind, so the end of the spec creates the definition again.

const (
	// definitionPolling is the interval for reading a definition, and for checking whether its kind is served again.
	definitionPolling = 100 * time.Millisecond
	// restoreTimeout limits how long the deletion and the restoration of a definition may take, without finalizers of its objects.
	restoreTimeout = time.Minute
	// controllerReleaseTimeout is how long the resource's controller may take to remove its finalizers from the run's objects. After that
	// they are removed here, because the definition cannot be created again before its objects are gone.
	controllerReleaseTimeout = 10 * time.Second
	// controllerWatchTimeout limits how long a controller may take to watch its kind again. The longest backoff of client-go is about 30 s.
	controllerWatchTimeout = time.Minute
)

// Delete deletes the CustomResourceDefinition of an object's kind until the spec ends. The spec is skipped when there is none, and when
// there are objects of the kind that the run did not create. Its behavior must require framework.OwnCluster.
func Delete(ctx context.Context, c *framework.Cluster, object *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	collection, err := c.Session().Harness.CollectionOf(object)
	if err != nil {
		c.Check(ctx, framework.Response{Request: "use " + object.GetKind(), Err: err})
	}
	named := fixtures.CustomResourceDefinition("")
	named.SetName(collection.Resource.GroupResource().String())
	read := c.TryGet(ctx, named)
	if apierrors.IsNotFound(read.Err) {
		ginkgo.Skip(fmt.Sprintf("%s is not defined by a CustomResourceDefinition", object.GetKind()))
	}
	found := framework.Require(read).Object
	mustBeUnused(ctx, c, collection)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { restore(ctx, c, found, collection, object) })
	if err := c.Session().Harness.Except(found); err != nil {
		c.Check(ctx, framework.Response{Request: "use " + found.GetKind(), Err: err})
	}
	c.Delete(ctx, found, framework.IfUID(found.GetUID()))
	return found
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

// restore creates a deleted definition again, and waits until its kind is served and its controller has noticed it.
func restore(ctx context.Context, c *framework.Cluster, definition *framework.Object, collection client.Collection, like *framework.Object) {
	ginkgo.GinkgoHelper()
	// Its watches end with the definition and cannot be resumed.
	c.Session().Watches.Drop(func(other client.Collection) bool { return other.Resource == collection.Resource })
	var last framework.Response
	until := time.Now().Add(controllerReleaseTimeout)
	err := wait.PollUntilContextTimeout(ctx, definitionPolling, c.Session().AtLeast(restoreTimeout), true, func(ctx context.Context) (bool, error) {
		last = ensureCreated(ctx, c, definition, client.Removal{AllFinalizers: time.Now().After(until)})
		return last.Err == nil && last.Object.GetDeletionTimestamp() == nil, nil
	})
	if err != nil {
		c.Check(ctx, framework.Response{Request: "create " + client.Title(definition) + " again", Err: errors.Join(err, last.Err)})
	}
	again := newOf(c, like)
	gomega.Eventually(ctx, func() error {
		return c.Session().Harness.DryRunCreate(ctx, again).Err
	}).WithPolling(definitionPolling).Should(gomega.Succeed(), "the kind must be served again")
	created := framework.Require(c.Check(ctx, c.Session().Harness.Create(ctx, again))).Object
	// This is not part of the test, and the next step finds out whether the controller works.
	_ = wait.PollUntilContextTimeout(ctx, definitionPolling, c.Session().AtLeast(controllerWatchTimeout), true, func(ctx context.Context) (bool, error) {
		read := c.Session().Harness.Get(ctx, created)
		return read.Err == nil && read.Object.GetResourceVersion() != created.GetResourceVersion(), nil
	})
}

// ensureCreated creates a definition that is gone. It releases the run's objects of one that is being deleted, because the deletion waits
// for them.
func ensureCreated(ctx context.Context, c *framework.Cluster, definition *framework.Object, removal client.Removal) framework.Response {
	harness := c.Session().Harness
	read := harness.Get(ctx, definition)
	switch {
	case apierrors.IsNotFound(read.Err):
		return harness.Adding(overlay.Overlay{}).Create(ctx, client.Unsaved(definition))
	case read.Err == nil && read.Object.GetDeletionTimestamp() != nil:
		harness.RemoveDefined(ctx, read.Object, c.Namespace(), client.RunLabel+"="+c.Session().Run, removal)
	}
	return read
}

// newOf returns another object like one of the spec, with its own name.
func newOf(c *framework.Cluster, like *framework.Object) *framework.Object {
	another := framework.Canary(like)
	another.SetNamespace(like.GetNamespace())
	another.SetName("again-" + rand.String(6) + "-" + like.GetName()) // which contains the run's id where the kind is cluster-scoped
	another.SetLabels(c.Labels())
	return another
}
