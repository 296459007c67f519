package options

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Delete responses", func() {
	cluster := UseCluster()

	Specify("A delete must return 200 or 202 with the removed object, or with a Status Success that has the name and uid in its details.",
		Behavior("options.response-names-object", Core,
			Source("reference/kubernetes-api/definitions/status-details-v1-meta"),
			Promise("UID of the resource. (when there is a single resource which can be described).")), func(ctx SpecContext) {
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.GhostBoundPod, fixtures.Service) {
				object := cluster.Create(ctx, kind("object"))

				response := Require(cluster.TryDelete(ctx, object, Grace(0)))

				Expect(response).To(Or(HaveStatusCode(http.StatusOK), HaveStatusCode(http.StatusAccepted)))
				named := response.Object
				if named.GetKind() == "Status" {
					Expect(named.Object).To(HaveKeyWithValue("status", metav1.StatusSuccess))
					named = &Object{Object: map[string]any{"metadata": named.Object["details"]}}
				}
				Expect(named.GetName()).To(Equal(object.GetName()))
				Expect(named.GetUID()).To(Equal(object.GetUID()))
				Expect(cluster.TryGet(ctx, object)).To(BeGone())
			}
		})

	Specify("A delete of an absent object must return 404, regardless of the delete options.",
		Behavior("options.absent-object", Core, AnyResource,
			Source("api-conventions"), Promise("Indicates that the requested resource does not exist.")), func(ctx SpecContext) {
			gone := cluster.Create(ctx, fixtures.ConfigMap("gone"))
			cluster.Delete(ctx, gone)
			never := gone.DeepCopy()
			never.SetName("never-" + gone.GetName())

			for _, object := range []*Object{gone, never} {
				for _, option := range []DeleteOption{
					Background, Foreground, Orphan, Grace(0), Grace(60), InQuery,
					IfUID(gone.GetUID()), IfVersion(gone.GetResourceVersion()),
				} {
					Expect(cluster.TryDelete(ctx, object, option)).To(HaveStatusCode(http.StatusNotFound))
				}
			}
		})

	Specify("A delete of a Job without a propagation policy returns a warning that pods are preserved.",
		Behavior("options.job-warning", Observed, Source("pkg/registry/batch/job/storage/storage.go")), func(ctx SpecContext) {
			job := cluster.Create(ctx, fixtures.Job("job"), suspended)

			Expect(WarningsOf(cluster, Require(cluster.TryDelete(ctx, job, DryRun)))).To(ContainElement(ContainSubstring("pods are preserved")))
			for _, policy := range []DeleteOption{Background, Foreground, Orphan} {
				Expect(WarningsOf(cluster, Require(cluster.TryDelete(ctx, job, DryRun, policy)))).To(BeEmpty())
			}
		})

	Specify("A delete of the PriorityClass system-cluster-critical or system-node-critical is refused with 403, and a "+
		"delete of another PriorityClass is not.",
		Behavior("options.system-priority-classes", Observed, Class,
			Source("pkg/registry/scheduling/priorityclass/storage/storage.go")), func(ctx SpecContext) {
			class := cluster.Create(ctx, fixtures.PriorityClass("lowest"))

			for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
				system := class.DeepCopy()
				system.SetName(name)
				// A server that does not refuse the request must not delete the object: it is a dry-run and for another uid.
				Expect(cluster.TryDelete(ctx, system, DryRunTwice, IfUID(class.GetUID()))).To(HaveStatusCode(http.StatusForbidden))
			}

			cluster.Delete(ctx, class)
			Expect(cluster.TryGet(ctx, class)).To(BeGone())
		})
})

// suspended suspends a Job, so that it has no pods.
func suspended(job *Object) {
	// This cannot fail, because the fixture's spec is an object.
	_ = unstructured.SetNestedField(job.Object, true, "spec", "suspend")
}
