package finalizers

import (
	"net/http"

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
			manifest := cluster.OrJudged(fixtures.Service)
			alive := cluster.Create(ctx, manifest("alive"), WithFinalizers(first, second))
			terminating := cluster.Create(ctx, manifest("terminating"), WithFinalizers(first, second))
			cluster.MustHaveStatus(ctx, alive)
			cluster.Delete(ctx, terminating)

			status := map[string]any{"status": cluster.WritableStatus(ctx, alive)}
			asRead := func(*Object) {}
			for _, object := range []*Object{alive, terminating} {
				Expect(cluster.TryUpdate(ctx, object, asRead, "status")).To(HaveStatusCode(http.StatusOK))
				Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), HaveFinalizers(first, second)))
				cluster.Patch(ctx, object, types.MergePatchType, status, "status")
				Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), HaveFinalizers(first, second)))
			}
		})
})
