package kubectl

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/kubectl"
)

var _ = Describe("Deletion of workloads by kubectl", func() {
	cluster := UseCluster()

	// Two pages of the documentation still describe a kubectl that scales workloads to zero first; see docs/upstream.md.
	Specify("The kubectl delete command sends one DELETE with the propagation policy background for a workload and no other write, "+
		"and the workload's pods are removed.",
		Behavior("kubectl.cascade-is-left-to-the-server", Observed, Kubectl, GC, KCM, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("pod"))
			for kind, manifest := range map[string]func(string) *Object{
				"replicationcontroller": fixtures.ReplicationController, "replicaset": fixtures.ReplicaSet, "job": fixtures.Job,
			} {
				workload := cluster.Create(ctx, manifest("workload"))
				pods := cluster.AwaitDependents(ctx, workload, 2)

				run := kubectl.New(ctx, cluster).Run(ctx, "delete", kind, workload.GetName())

				Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(workload)))
				Expect(run.Writes()).To(HaveLen(1))
				Expect(run.DeleteOptions()).To(ConsistOf(HaveField("PropagationPolicy", HaveValue(Equal(metav1.DeletePropagationBackground)))))
				Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods...)))
			}
		})

	Specify("The kubectl delete command with --cascade=orphan must send one DELETE for a ReplicationController or ReplicaSet and no other "+
		"write, and the pods of the workload must remain.",
		Behavior("kubectl.orphan-workload", Core, Kubectl, GC, KCM, Source("concepts/workloads/controllers/replicaset"),
			Promise("You can delete a ReplicaSet without affecting any of its Pods using `kubectl delete` with the `--cascade=orphan` option.")),
		func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("pod"))
			for kind, manifest := range map[string]func(string) *Object{
				"replicationcontroller": fixtures.ReplicationController, "replicaset": fixtures.ReplicaSet,
			} {
				workload := cluster.Create(ctx, manifest(kind))
				pods := cluster.AwaitDependents(ctx, workload, 2)
				cluster.AwaitCollector(ctx, pods[0]) // the collector knows both pods

				run := kubectl.New(ctx, cluster).Run(ctx, "delete", kind, workload.GetName(), "--cascade=orphan")

				Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(workload)))
				Expect(run.Writes()).To(HaveLen(1))
				cluster.AwaitCollector(ctx, pods[0])
				for _, pod := range pods {
					Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeOwnedBy(), Not(BeTerminating())))
				}
			}
		})
})
