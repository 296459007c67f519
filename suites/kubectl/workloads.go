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

	Specify("The kubectl delete command must send one DELETE with the propagation policy background for a workload and no other write, "+
		"and the workload's pods must be removed.",
		Behavior("kubectl.cascade-is-left-to-the-server", Core, Kubectl, GC, KCM, Source(reference),
			Promise("Selects the deletion cascading strategy for the dependents (e.g. Pods created by a ReplicationController). "+
				"Defaults to background.")), func(ctx SpecContext) {
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
})
