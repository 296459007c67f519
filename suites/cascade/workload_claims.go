package cascade

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Claims of StatefulSets", func() {
	cluster := UseCluster()

	// start creates a StatefulSet that keeps its claims except in one case, waits for its pods, and returns all objects.
	start := func(ctx SpecContext, name string, options ...ObjectOption) (set *Object, pods, claims []*Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.StatefulSet("any"))
		cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
		cluster.Watch(ctx, fixtures.PersistentVolumeClaim("any"))
		set = cluster.Create(ctx, fixtures.StatefulSetWithClaims(name), options...)
		cluster.AwaitDependents(ctx, set, 2)
		for _, ordinal := range []string{"-0", "-1"} {
			pod, claim := fixtures.UnscheduledPod(set.GetName()+ordinal), fixtures.PersistentVolumeClaim("data-"+set.GetName()+ordinal)
			pod.SetNamespace(set.GetNamespace())
			claim.SetNamespace(set.GetNamespace())
			pods, claims = append(pods, cluster.Get(ctx, pod)), append(claims, cluster.Get(ctx, claim))
		}
		return set, pods, claims
	}
	policy := func(when, what string) ObjectOption {
		return WithField(what, "spec", "persistentVolumeClaimRetentionPolicy", when)
	}

	Specify("The claims of a deleted StatefulSet must be deleted if its persistentVolumeClaimRetentionPolicy has "+
		"whenDeleted Delete, and must otherwise remain.",
		Behavior("cascade.workload.statefulset-claims", Extended, GC, KCM,
			Source(statefulSets),
			Promise("With the `whenDeleted` policy all PVCs from the `volumeClaimTemplate` are deleted after their Pods have been "+
				"deleted.")), func(ctx SpecContext) {
			deleting, _, deleted := start(ctx, "deleting", policy("whenDeleted", "Delete"))
			retaining, _, retained := start(ctx, "retaining", policy("whenDeleted", "Retain"), policy("whenScaled", "Delete"))
			silent, _, kept := start(ctx, "silent")
			owned := func(claim *Object) EventMatcher { return Matching(claim, BeOwnedBy(deleting)) }
			Eventually(ctx, cluster.History(deleted...)).Should(HaveObserved(Each(owned, deleted...)))

			for _, set := range []*Object{deleting, retaining, silent} {
				cluster.Delete(ctx, set, Background)
			}

			Eventually(ctx, cluster.History(deleted...)).Should(HaveObserved(Each(Deleted, deleted...)))
			cluster.AwaitCollector(ctx, fixtures.PersistentVolumeClaim("any"))
			for _, claim := range append(retained, kept...) {
				Expect(cluster.Get(ctx, claim)).To(And(BeSameObjectAs(claim), BeOwnedBy(), Not(BeTerminating())))
			}
		})

	Specify("Scaling down a StatefulSet must delete the claims of removed ordinals only if whenScaled is Delete, and a "+
		"manually deleted pod must keep its claim.",
		Behavior("cascade.workload.statefulset-claims-scaled", Extended, GC, KCM,
			Source(statefulSets),
			Promise("With the `whenScaled` policy, only PVCs corresponding to Pod replicas being scaled down are deleted, after their "+
				"Pods have been deleted.")), func(ctx SpecContext) {
			deleting, pods, deleted := start(ctx, "deleting", policy("whenScaled", "Delete"))
			retaining, _, retained := start(ctx, "retaining", policy("whenScaled", "Retain"), policy("whenDeleted", "Delete"))

			cluster.Update(ctx, deleting, replicas(1))
			cluster.Update(ctx, retaining, replicas(1))
			Eventually(ctx, cluster.History(deleted[1])).Should(HaveObserved(Deleted(deleted[1])))

			cluster.Delete(ctx, pods[0])
			cluster.AwaitDependents(ctx, deleting, 3)
			cluster.AwaitCollector(ctx, pods[0], fixtures.PersistentVolumeClaim("any"))
			for _, claim := range append(retained, deleted[0]) {
				Expect(cluster.Get(ctx, claim)).To(And(BeSameObjectAs(claim), Not(BeTerminating())))
			}
		})
})

var _ = Describe("Claims of pods", func() {
	cluster := UseCluster()

	// outlived expects the only claim of a pod to remain while the pod terminates, and to be deleted after it.
	outlived := func(ctx SpecContext, pod, like *Object) {
		GinkgoHelper()
		claim := cluster.AwaitDependents(ctx, pod, 1)[0]
		Expect(claim).To(BeOwnedBy(pod))

		cluster.Delete(ctx, pod)
		cluster.AwaitCollector(ctx, like)
		Expect(cluster.Get(ctx, pod)).To(BeTerminating())
		Expect(cluster.Get(ctx, claim)).NotTo(BeTerminating())

		cluster.Delete(ctx, pod, Grace(0))
		Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Deleted(claim)))
	}

	Specify("The claim of a generic ephemeral volume must be deleted after its pod is removed, and not before.",
		Behavior("cascade.workload.ephemeral-claims", Core, GC, KCM,
			Source("concepts/storage/ephemeral-volumes"),
			Promise("When the Pod is deleted, the Kubernetes garbage collector deletes the PVC")), func(ctx SpecContext) {
			claim := fixtures.PersistentVolumeClaim("any")
			cluster.Watch(ctx, claim)
			outlived(ctx, cluster.Create(ctx, fixtures.PodWithClaim("pod")), claim)
		})

	Specify("A ResourceClaim that is created from a template must be deleted after its pod is removed, and not before.",
		Behavior("cascade.workload.resource-claims", Extended, GC, KCM, Since("1.34"),
			Source("concepts/scheduling-eviction/dynamic-resource-allocation"),
			Promise("When the Pod terminates, Kubernetes deletes the corresponding ResourceClaim.")), func(ctx SpecContext) {
			claim := fixtures.ResourceClaim("any")
			cluster.Watch(ctx, claim)
			template := cluster.Create(ctx, fixtures.ResourceClaimTemplate("template"))
			outlived(ctx, cluster.Create(ctx, fixtures.PodWithResourceClaim("pod", template.GetName())), claim)
		})
})
