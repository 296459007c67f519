package cascade

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Claims of StatefulSets", func() {
	cluster := UseCluster()

	// start creates a StatefulSet, waits for its pods, and returns all objects.
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

	Specify("The claims of a deleted StatefulSet must be deleted if its persistentVolumeClaimRetentionPolicy has whenDeleted Delete.",
		Behavior("cascade.workload.statefulset-claims", Extended, GC, KCM,
			Source(statefulSets),
			Promise("With the `whenDeleted` policy all PVCs from the `volumeClaimTemplate` are deleted after their Pods have been "+
				"deleted.")), func(ctx SpecContext) {
			set, _, claims := start(ctx, "deleting", policy("whenDeleted", "Delete"))
			owned := func(claim *Object) EventMatcher { return Matching(claim, BeOwnedBy(set)) }
			Eventually(ctx, cluster.History(claims...)).Should(HaveObserved(Each(owned, claims...)))

			cluster.Delete(ctx, set, Background)

			Eventually(ctx, cluster.History(claims...)).Should(HaveObserved(Each(Deleted, claims...)))
		})

	Specify("The claims of a deleted StatefulSet must remain if it has no persistentVolumeClaimRetentionPolicy, or one with whenDeleted Retain.",
		Behavior("cascade.workload.statefulset-claims-retained", Core, GC, KCM,
			Source(statefulSets),
			Promise("Deleting and/or scaling a StatefulSet down will *not* delete the volumes associated with the StatefulSet.")), func(ctx SpecContext) {
			retaining, pods, retained := start(ctx, "retaining", policy("whenDeleted", "Retain"), policy("whenScaled", "Delete"))
			silent, others, kept := start(ctx, "silent")

			cluster.Delete(ctx, retaining, Background)
			cluster.Delete(ctx, silent, Background)

			pods = append(pods, others...)
			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods...)))
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

	Specify("A StatefulSet does not recreate a deleted pod while the claim of the pod is terminating.",
		Behavior("cascade.workload.statefulset-claim-terminating", Observed, KCM,
			Source("pkg/controller/statefulset/stateful_pod_control.go")), func(ctx SpecContext) {
			awaitControllers := func() { // what has happened to claims is known to the controllers then
				canary := cluster.Create(ctx, fixtures.PersistentVolumeClaim("canary"), WithLabel(CanaryLabel, "true"))
				cluster.Delete(ctx, canary)
				Eventually(ctx, cluster.History(canary)).Should(HaveObserved(Deleted(canary)))
			}
			set, pods, claims := start(ctx, "terminating")
			cluster.Update(ctx, claims[0], Held)
			cluster.Delete(ctx, claims[0])
			awaitControllers()

			cluster.Delete(ctx, pods[0])
			workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
			cluster.AwaitDependents(ctx, set, 2)

			cluster.Release(ctx, claims[0])

			Eventually(ctx, cluster.History(claims[0])).Should(HaveObserved(Deleted(claims[0])))
			awaitControllers()
			cluster.Update(ctx, set, WithLabel(Domain+"/reconciled", "without-the-claim")) // by itself the controller tries later and later
			Expect(cluster.AwaitDependents(ctx, set, 3)[2].GetName()).To(Equal(pods[0].GetName()))
			Expect(cluster.TryGet(ctx, claims[0])).To(And(HaveStatusCode(http.StatusOK), Not(BeSameObjectAs(claims[0]))))
		})

	Specify("A StatefulSet with whenDeleted Delete does not take over a claim that another object controls.",
		Behavior("cascade.workload.statefulset-claims-of-others", Observed, GC, KCM, Since("1.31"),
			Source("pkg/controller/statefulset/stateful_set_utils.go")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("claim"), Named("data-"+cluster.FreeName("takes")+"-0"), OwnedBy(owner, Controlling))
			set, _, claims := start(ctx, "takes", policy("whenDeleted", "Delete"))
			Eventually(ctx, cluster.History(claims[1])).Should(HaveObserved(Matching(claims[1], BeOwnedBy(set))))

			cluster.Delete(ctx, set, Background)

			Eventually(ctx, cluster.History(claims[1])).Should(HaveObserved(Deleted(claims[1])))
			cluster.AwaitCollector(ctx, claim)
			Expect(cluster.Get(ctx, claim)).To(BeUnchangedSince(claim))
		})

	Specify("The claims of a StatefulSet with whenDeleted Delete remain if it is deleted before they have its owner reference.",
		Behavior("cascade.workload.statefulset-claims-at-once", Observed, Hook, GC, KCM, Source("kubernetes#142130")), func(ctx SpecContext) {
			manifest := with(fixtures.StatefulSetWithClaims("at-once"), replicas(1), policy("whenDeleted", "Delete"))
			prepared := cluster.Prepare(ctx, manifest)
			claim := fixtures.PersistentVolumeClaim("data-" + prepared.GetName() + "-0")
			claim.SetNamespace(prepared.GetNamespace())
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update), webhooks.OnResources("persistentvolumeclaims"))
			webhook.Deny(claim, "not yet")
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, manifest)
			pod := cluster.AwaitDependents(ctx, set, 1)[0]
			webhook.AwaitReview(ctx, claim)

			cluster.Delete(ctx, set, Background)

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
			webhook.Allow(claim)
			cluster.AwaitCollector(ctx, fixtures.PersistentVolumeClaim("any"))
			Expect(cluster.Get(ctx, claim)).To(And(BeOwnedBy(), Not(BeTerminating())))
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

	Specify("A ResourceClaim that is created from a template does not block the foreground deletion of its pod.",
		Behavior("cascade.workload.resource-claim-does-not-block", Observed, GC, KCM, Since("1.35"),
			Source("pkg/controller/resourceclaim/controller.go")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.ResourceClaim("any"))
			template := cluster.Create(ctx, fixtures.ResourceClaimTemplate("template"))
			pod := cluster.Create(ctx, fixtures.PodWithResourceClaim("pod", template.GetName()))
			claim := cluster.AwaitDependents(ctx, pod, 1)[0]
			cluster.Update(ctx, claim, Held)
			cluster.AwaitCollectorSync(ctx, claim)

			cluster.Delete(ctx, pod, Foreground, Grace(0))

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
			Expect(cluster.Get(ctx, claim)).To(BeSameObjectAs(claim))
		})
})
