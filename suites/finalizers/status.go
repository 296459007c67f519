package finalizers

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Status writes to objects with finalizers", func() {
	cluster := UseCluster()

	Specify("A status update or patch must keep all finalizers of the object, whether or not the object is terminating.",
		Behavior("finalizers.status-write-keeps-finalizers", Core, AnyResource, Source(finalizersPage), Promise(prevented.quote)), func(ctx SpecContext) {
			manifest := orTested(ctx, cluster, fixtures.Service, fixtures.ResourceQuota)
			alive := cluster.Create(ctx, manifest("alive"), WithFinalizers(first, second))
			terminating := cluster.Create(ctx, manifest("terminating"), WithFinalizers(first, second))
			mustHaveStatus(ctx, cluster, alive)
			cluster.Delete(ctx, terminating)

			status := map[string]any{"status": writableStatus(ctx, cluster, alive)}
			asRead := func(*Object) {}
			for _, object := range []*Object{alive, terminating} {
				Expect(cluster.TryUpdate(ctx, object, asRead, "status")).To(HaveStatusCode(http.StatusOK))
				Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), HaveFinalizers(first, second)))
				cluster.Patch(ctx, object, types.MergePatchType, status, "status")
				Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), HaveFinalizers(first, second)))
			}
		})
})

// orTested returns the first served kind for behaviors that ConfigMaps do not support, or the resource under test (--resource), whether it
// supports them or not.
func orTested(ctx context.Context, cluster *Cluster, kinds ...func(name string) *Object) func(name string) *Object {
	GinkgoHelper()
	if cluster.Session().Resource == nil {
		return cluster.FirstServed(ctx, kinds...)
	}
	return fixtures.ConfigMap
}

// mustHaveStatus skips the spec when objects of a kind have no status subresource.
func mustHaveStatus(ctx context.Context, cluster *Cluster, object *Object) {
	GinkgoHelper()
	switch has, err := cluster.Session().Harness.HasSubresource(cluster.CollectionOf(ctx, object), "status"); {
	case err != nil:
		cluster.Check(ctx, Response{Request: "find the subresources of " + object.GetKind(), Err: err})
	case !has:
		Skip(fmt.Sprintf("a %s has no status subresource", object.GetKind()))
	}
}

// writableStatus returns a status that the server accepts for an object in a dry-run: an empty one, or if the kind requires more, that of
// its fixture or its schema. If rules outside the schema reject that too, it is the current status of the object, which changes nothing;
// nil if there is none.
func writableStatus(ctx context.Context, cluster *Cluster, object *Object) any {
	GinkgoHelper()
	for _, status := range []map[string]any{{}, cluster.Session().Status} {
		body := map[string]any{"status": status}
		if !apierrors.IsInvalid(cluster.DryRun().TryPatch(ctx, object, types.MergePatchType, body, "status").Err) {
			return status
		}
	}
	return cluster.Get(ctx, object).Object["status"]
}
