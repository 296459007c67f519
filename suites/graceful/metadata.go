package graceful

import (
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/protocols"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Metadata of terminating pods", func() {
	cluster := UseCluster()

	Specify("An update, patch or status write of a terminating pod must not change its deletionTimestamp or deletionGracePeriodSeconds.",
		Behavior("graceful.timestamp-is-immutable", Core, Source(objectMeta), Promise(notPostponed)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			cluster.Delete(ctx, pod, Grace(300))
			terminating := cluster.Get(ctx, pod)

			later := terminating.GetDeletionTimestamp().Add(1000 * time.Second).UTC().Format(time.RFC3339)
			changes := map[string]map[string]any{
				"clear both":         {"deletionTimestamp": nil, "deletionGracePeriodSeconds": nil},
				"move the timestamp": {"deletionTimestamp": later},
				"raise the grace":    {"deletionGracePeriodSeconds": int64(1300)},
				"lower the grace":    {"deletionGracePeriodSeconds": int64(100)},
			}
			asItWas := And(HaveDeletionTimestamp(terminating.GetDeletionTimestamp()), HaveGracePeriod(300))
			for what, change := range changes {
				for _, subresources := range [][]string{nil, {"status"}} {
					// The update may be rejected or ignored: only the stored object counts.
					cluster.TryUpdate(ctx, pod, WithMetadata(change), subresources...)
					Expect(cluster.Get(ctx, pod)).To(asItWas, "update of %v to %s", subresources, what)

					cluster.TryPatch(ctx, pod, types.MergePatchType, map[string]any{"metadata": change}, subresources...)
					Expect(cluster.Get(ctx, pod)).To(asItWas, "patch of %v to %s", subresources, what)
				}
			}
		})

	Specify("The first graceful delete of a pod must increment metadata.generation by one, and later deletes must not increment it again.",
		Behavior("graceful.generation-once", Core, Since("1.33"), Source("KEP-5067"),
			Promise("Verify that deletion of a pod causes the `metadata.generation` to be incremented by 1.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			cluster.Delete(ctx, pod, Grace(300))
			Expect(cluster.Get(ctx, pod)).To(HaveGeneration(pod.GetGeneration() + 1))

			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, pod, Grace(200))
			Expect(cluster.Get(ctx, pod)).To(And(HaveGracePeriod(200), HaveGeneration(pod.GetGeneration()+1)))
		})

	Specify("A graceful delete of a running pod changes only its deletionTimestamp, deletionGracePeriodSeconds and generation.",
		Behavior("graceful.delete-changes-metadata-only", Observed, Source(restDelete)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			running := workloads.SetPhase(ctx, cluster, pod, "Running")

			cluster.Delete(ctx, pod)

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), BeAsBeforeDeletion(running)))
		})

	Specify("A Table shows a terminating pod with the status Terminating, and one that has ended with its phase.",
		Behavior("graceful.table-shows-terminating", Observed, Since("1.31"), Source("pkg/printers/internalversion/printers.go")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			workloads.SetPhase(ctx, cluster, pod, "Running")

			shows := func(status string) {
				GinkgoHelper()
				table := Require(protocols.Accepting(cluster, TableJSON).TryGet(ctx, pod))
				Expect(table).To(And(HaveJSONPath("{.columnDefinitions[2].name}", "Status"), HaveJSONPath("{.rows[0].cells[2]}", status)))
			}

			cluster.Delete(ctx, pod)

			shows("Terminating")
			Expect(cluster.Get(ctx, pod)).To(HavePhase("Running"))
			workloads.SetPhase(ctx, cluster, pod, "Succeeded")
			shows("Succeeded")
		})

	Specify("The name of a terminating pod must be refused with 409 for a new pod, and a delete with grace period 0 "+
		"must free the name immediately.",
		Behavior("graceful.grace-zero-frees-name", Core, Source(podLifecycle), Promise(nameIsFree)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			cluster.Delete(ctx, pod)

			Expect(cluster.TryCreate(ctx, fixtures.GhostBoundPod("pod"))).To(HaveStatusCode(http.StatusConflict))

			cluster.Delete(ctx, pod, Grace(0))
			namesake := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			Expect(namesake.GetName()).To(Equal(pod.GetName()), "the new pod has the same name")
			Expect(namesake.GetUID()).NotTo(Equal(pod.GetUID()), "the new pod has another uid")
		})

	Specify("The labels of a terminating pod must be writable, and its nodeName must not be.",
		Behavior("graceful.labels-stay-writable", Core, Source("concepts/overview/working-with-objects/labels"),
			Promise("Labels can be attached to objects at creation time and subsequently added and modified at any time.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			cluster.Delete(ctx, pod)

			cluster.Update(ctx, pod, WithLabel(Domain+"/note", "still-writable"))
			Expect(cluster.Get(ctx, pod).GetLabels()).To(HaveKeyWithValue(Domain+"/note", "still-writable"))

			terminating := cluster.Get(ctx, pod)
			Expect(cluster.TryUpdate(ctx, pod, OnNode("another-node"))).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(terminating))
		})

	Specify("Binding a terminating pod to a node is refused with 409.",
		Behavior("graceful.no-binding-while-terminating", Observed, Source("pkg/registry/core/pod/storage/storage.go")), func(ctx SpecContext) {
			free := cluster.Create(ctx, fixtures.UnscheduledPod("free"))
			held := cluster.Create(ctx, fixtures.UnscheduledPod("held"), Held)
			cluster.Delete(ctx, held)
			terminating := cluster.Get(ctx, held)

			Expect(tryBind(ctx, cluster, held, held.GetName())).To(HaveStatusCode(http.StatusConflict))
			Expect(cluster.Get(ctx, held)).To(BeUnchangedSince(terminating))

			Expect(tryBind(ctx, cluster, free, free.GetName())).To(HaveStatusCode(http.StatusCreated))
		})
})

// tryBind binds an unscheduled pod to a node, as a scheduler does.
func tryBind(ctx SpecContext, cluster *Cluster, pod *Object, node string) Response {
	GinkgoHelper()
	return cluster.Send(ctx, pod, Request{Method: http.MethodPost, Subresource: "binding", Body: corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.GetName(), Namespace: pod.GetNamespace()},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}})
}
