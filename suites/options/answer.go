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

var _ = Describe("the answer to a delete", func() {
	cluster := UseCluster()

	Specify("it is 200 or 202 with the object that was removed, or with a Status that says Success and in its details the name and uid",
		Behavior("options.answer-names-uid", Core,
			Source("reference/kubernetes-api/common-definitions/status"),
			Promise("UID of the resource. (when there is a single resource which can be described).")), func(ctx SpecContext) {
			for _, manifest := range []func(string) *Object{fixtures.ConfigMap, fixtures.UnscheduledPod, fixtures.Service} {
				object := cluster.Create(ctx, manifest("object"))

				response := Require(cluster.TryDelete(ctx, object))

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

	Specify("it is 404 where no object has the name, whatever the options",
		Behavior("options.absent-is-404", Core, AnyResource,
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

	Specify("it warns that the pods are preserved when a Job is deleted with no policy",
		Behavior("options.job-warning", Observed, Source("pkg/registry/batch/job/storage/storage.go")), func(ctx SpecContext) {
			job := cluster.Create(ctx, fixtures.Job("job"), suspended)

			Expect(WarningsOf(cluster, Require(cluster.TryDelete(ctx, job, DryRun)))).To(ContainElement(ContainSubstring("pods are preserved")))
			for _, policy := range []DeleteOption{Background, Foreground, Orphan} {
				Expect(WarningsOf(cluster, Require(cluster.TryDelete(ctx, job, DryRun, policy)))).To(BeEmpty())
			}
		})

	Specify("it is 403 for the PriorityClasses system-cluster-critical and system-node-critical, and not for others",
		Behavior("options.system-priority-classes-are-forbidden", Observed, Class,
			Source("pkg/registry/scheduling/priorityclass/storage/storage.go")), func(ctx SpecContext) {
			class := cluster.Create(ctx, fixtures.PriorityClass("lowest"))

			for _, name := range []string{"system-cluster-critical", "system-node-critical"} {
				system := class.DeepCopy()
				system.SetName(name)
				// A server that does not refuse must not lose it: the request is a dry-run and for another uid.
				Expect(cluster.TryDelete(ctx, system, DryRunTwice, IfUID(class.GetUID()))).To(HaveStatusCode(http.StatusForbidden))
			}

			cluster.Delete(ctx, class)
			Expect(cluster.TryGet(ctx, class)).To(BeGone())
		})
})

// suspended keeps a Job from having pods.
func suspended(job *Object) {
	// The fixture's spec is an object, so this cannot fail.
	_ = unstructured.SetNestedField(job.Object, true, "spec", "suspend")
}
