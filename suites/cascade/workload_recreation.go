package cascade

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// recreations are the kinds whose objects are created again under the name of a deleted one, with the resource that their controllers
// create first, the page that promises pods, and the first version.
var recreations = []struct{ kind, first, page, promise, since string }{
	{"ReplicationController", "pods", "concepts/workloads/controllers/replicationcontroller", "If there are too few, the ReplicationController starts more pods.", "1.30"},
	{"ReplicaSet", "pods", replicaSets, "A ReplicaSet ensures that a specified number of pod replicas are running at any given time.", "1.30"},
	{"Deployment", "replicasets", deployments, "Each time a new Deployment is observed by the Deployment controller, a ReplicaSet is created to bring up the desired Pods.", "1.30"},
	{"StatefulSet", "pods", forceDelete, "The StatefulSet controller is responsible for creating, scaling and deleting members of the StatefulSet.", "1.30"},
	{"DaemonSet", "pods", daemonSets, "A DaemonSet ensures that all (or some) Nodes run a copy of a Pod.", "1.30"},
	{"Job", "pods", jobs, "When a Job is created, the Job controller will immediately begin creating Pods to satisfy the Job's requirements", "1.37"},
}

// recreated deletes a workload while its controller creates the first dependent, and creates another one of this name. The new one must
// get dependents even if the dependent of the deleted one remains for some time.
func (w workloadKind) recreated(ctx SpecContext, cluster *Cluster, first string) {
	for _, kind := range slices.Backward(w.makes) {
		cluster.Watch(ctx, kind)
	}
	creations := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Create), webhooks.OnResources(first))
	deletions := webhooks.Validating(ctx, cluster)
	creations.HoldDependents(cluster.Namespace(), cluster.FreeName(w.id()))
	var options []ObjectOption
	if w.name == "Job" {
		options = append(options, withManualSelector)
	}
	deleted := w.create(ctx, cluster, w.id(), options...)
	late := creations.AwaitDependent(ctx, deleted)
	deletions.Deny(late, "not yet")

	cluster.Delete(ctx, deleted, Background)
	again := createAgain(ctx, cluster, deleted)
	w.await(ctx, cluster, workloads.MustHaveFreeWorker) // which knows both
	creations.AllowDependents(cluster.Namespace(), deleted.GetName())
	w.await(ctx, cluster, workloads.AwaitController)
	deletions.Allow(late)

	children := cluster.AwaitDependents(ctx, again, w.children)
	if w.grandchildren > 0 {
		cluster.AwaitDependents(ctx, children[0], w.grandchildren)
	}
}

// await reaches a barrier of the controllers that create the dependents of the kind.
func (w workloadKind) await(ctx SpecContext, cluster *Cluster, barrier func(context.Context, *Cluster, ...*Object)) {
	GinkgoHelper()
	if w.name == "Job" {
		awaitJobController(ctx, cluster)
		return
	}
	barrier(ctx, cluster, w.canaries...)
}

var _ = Describe("Workloads under the name of a deleted one", func() {
	cluster := UseCluster()

	for _, recreation := range recreations {
		kind := workloadKinds[slices.IndexFunc(workloadKinds, func(kind workloadKind) bool { return kind.name == recreation.kind })].withoutRevisions()
		options := append([]BehaviorOption{GC, KCM, Hook, Since(recreation.since), Source(recreation.page), Promise(recreation.promise)}, kind.options...)
		Specify("A "+kind.name+" must get its pods when it takes the name of one that was deleted while the controller was creating "+
			"objects for it.",
			Behavior("cascade.workload."+kind.id()+"-recreated", Core, options...), func(ctx SpecContext) {
				kind.recreated(ctx, cluster, recreation.first)
			})
	}

	Specify("A ReplicaSet that takes the name of a deleted one gets no pods if the controller was adopting a pod for the deleted one.",
		Behavior("cascade.workload.recreated-while-adopting", Observed, KCM, Hook, Source("pkg/controller/replicaset/replica_set.go")),
		func(ctx SpecContext) {
			orphan := cluster.Create(ctx, fixtures.UnscheduledPod("orphan"), WithLabel(appLabel, "adopting"))
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // it knows the orphan
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update))
			webhook.Hold(orphan)
			deleted := cluster.Create(ctx, fixtures.ReplicaSet("adopting"))
			webhook.AwaitReview(ctx, orphan)

			cluster.Delete(ctx, deleted, Background)
			again := createAgain(ctx, cluster, deleted)
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // it knows both
			webhook.Allow(orphan)

			cluster.AwaitDependents(ctx, deleted, 1)
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"))
			cluster.AwaitDependents(ctx, again, 0)
		})
})
