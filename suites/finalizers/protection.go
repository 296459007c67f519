package finalizers

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// The finalizers that protect objects in use.
const (
	claimProtection  = "kubernetes.io/pvc-protection"
	volumeProtection = "kubernetes.io/pv-protection"
	classProtection  = "kubernetes.io/vac-protection"
	// volumeReclaim keeps a volume of an in-tree provisioner until its storage is deleted.
	volumeReclaim = "kubernetes.io/pv-controller"
)

// persistentVolumes is the page of the documentation on volumes and claims.
const persistentVolumes = "concepts/storage/persistent-volumes"

// inPhase matches a volume or a claim in this phase.
func inPhase(phase string) OmegaMatcher { return HaveJSONPath("{.status.phase}", phase) }

var _ = Describe("Protection of PersistentVolumeClaims", func() {
	cluster := UseCluster()

	Specify("A PersistentVolumeClaim used by a scheduled pod, even a terminated one, must keep the finalizer "+
		"kubernetes.io/pvc-protection until the pod is removed.",
		Behavior("finalizers.claim-in-use", Core, KCM, Source(persistentVolumes),
			Promise("PVC removal is postponed until the PVC is no longer actively used by any Pods.")), func(ctx SpecContext) {
			claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("claim"))
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), UsingClaim(claim))
			// The controller handles claims one by one. An unscheduled pod does not protect its claim.
			barrier := func(name string) {
				GinkgoHelper()
				free := cluster.Create(ctx, fixtures.PersistentVolumeClaim(name))
				cluster.Create(ctx, fixtures.UnscheduledPod(name), UsingClaim(free))
				cluster.Delete(ctx, free)
				Eventually(ctx, cluster.History(free)).Should(HaveObserved(Terminating(free), Deleted(free)))
			}
			kept := And(BeTerminating(), HaveFinalizers(claimProtection))

			cluster.Delete(ctx, claim)
			barrier("after-the-delete")
			Expect(cluster.Get(ctx, claim)).To(kept)
			workloads.SetPhase(ctx, cluster, pod, "Succeeded")
			barrier("after-the-end")
			Expect(cluster.Get(ctx, claim)).To(kept)

			cluster.Delete(ctx, pod, Grace(0))
			Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Terminating(claim), Deleted(claim)))
		})

	Specify("A pod that uses a terminating PersistentVolumeClaim is not scheduled.",
		Behavior("finalizers.claim-blocks-scheduling", Observed, KCM, SimulatedNode, Source("test/e2e/storage/pvc_protection.go")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			room := map[string]any{"cpu": "1", "memory": "1Gi", "pods": "10"}
			cluster.Create(ctx, fixtures.Node("node"), WithLabel(Domain+"/node", cluster.Namespace()),
				WithField(room, "status", "capacity"), WithField(room, "status", "allocatable"))
			here := func(pod *Object) {
				WithField(map[string]any{Domain + "/node": cluster.Namespace()}, "spec", "nodeSelector")(pod)
				WithField([]any{map[string]any{"operator": "Exists"}}, "spec", "tolerations")(pod)
				WithField(corev1.DefaultSchedulerName, "spec", "schedulerName")(pod)
			}
			terminating, _ := bound(ctx, cluster, "terminating", Held)
			cluster.Delete(ctx, terminating)
			living, _ := bound(ctx, cluster, "living")

			scheduled := cluster.Create(ctx, fixtures.UnscheduledPod("scheduled"), UsingClaim(living), here)
			Eventually(ctx, cluster.History(scheduled)).Should(HaveObserved(Matching(scheduled, HaveCondition("PodScheduled"))))
			// The scheduler has seen the living claim bound, and so the deletion of the other one before that.
			refused := cluster.Create(ctx, fixtures.UnscheduledPod("refused"), UsingClaim(terminating), here)
			Eventually(ctx, cluster.History(refused)).Should(HaveObserved(Matching(refused,
				HaveJSONPath(`{.status.conditions[?(@.type=="PodScheduled")].reason}`, "Unschedulable"))))
			Expect(nodes.Of(cluster.Get(ctx, refused))).To(BeEmpty(), "the pod is not scheduled")
		})
})

// bound creates a claim and a volume for it, and waits until they are bound.
func bound(ctx SpecContext, cluster *Cluster, name string, options ...ObjectOption) (claim, volume *Object) {
	GinkgoHelper()
	claim = cluster.Create(ctx, fixtures.PersistentVolumeClaim(name), options...)
	volume = cluster.Create(ctx, fixtures.PersistentVolume(name, claim))
	Eventually(ctx, cluster.History(volume)).Should(HaveObserved(Matching(volume, inPhase("Bound"))))
	Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Matching(claim, inPhase("Bound"))))
	return claim, volume
}

var _ = Describe("Protection of PersistentVolumes", func() {
	cluster := UseCluster()

	Specify("A bound PersistentVolume must keep the finalizer kubernetes.io/pv-protection until its claim is removed.",
		Behavior("finalizers.volume-in-use", Core, KCM, Volume, Source(persistentVolumes),
			Promise("PV removal is postponed until the PV is no longer bound to a PVC.")), func(ctx SpecContext) {
			claim, volume := bound(ctx, cluster, "bound", Held)
			barrier := func() {
				GinkgoHelper()
				free := cluster.Create(ctx, fixtures.CSIVolume("free"))
				cluster.Delete(ctx, free)
				Eventually(ctx, cluster.History(free)).Should(HaveObserved(Terminating(free), Deleted(free)))
			}
			kept := And(BeTerminating(), HaveFinalizers(volumeProtection))

			cluster.Delete(ctx, volume)
			barrier()
			Expect(cluster.Get(ctx, volume)).To(kept)
			cluster.Delete(ctx, claim)
			barrier()
			Expect(cluster.Get(ctx, volume)).To(kept)

			cluster.Release(ctx, claim)
			Eventually(ctx, cluster.History(volume)).Should(HaveObserved(Terminating(volume), Deleted(volume)))
		})

	Specify("A PersistentVolume with the reclaim policy Retain must become Released and remain when its claim is deleted.",
		Behavior("finalizers.volume-retained", Core, KCM, Volume, Source(persistentVolumes),
			Promise("When the PersistentVolumeClaim is deleted, the PersistentVolume still exists and the volume is considered \"released\".")), func(ctx SpecContext) {
			claim, volume := bound(ctx, cluster, "retained")
			later, canary := bound(ctx, cluster, "later")

			cluster.Delete(ctx, claim)
			Eventually(ctx, cluster.History(volume)).Should(HaveObserved(Matching(volume, inPhase("Released"))))
			cluster.Delete(ctx, later)
			Eventually(ctx, cluster.History(canary)).Should(HaveObserved(Matching(canary, inPhase("Released"))))

			Expect(cluster.Get(ctx, volume)).To(And(BeSameObjectAs(volume), Not(BeTerminating()), inPhase("Released")))
		})
})

var _ = Describe("Reclaiming of PersistentVolumes", func() {
	cluster := UseCluster()

	// provisioned creates a claim, and a volume for it like the in-tree provisioner of host paths.
	provisioned := func(ctx SpecContext, name, path string) (claim, volume *Object) {
		GinkgoHelper()
		claim = cluster.Create(ctx, fixtures.PersistentVolumeClaim(name))
		volume = cluster.Create(ctx, fixtures.PersistentVolume(name, claim), WithField("Delete", "spec", "persistentVolumeReclaimPolicy"),
			WithField(path, "spec", "hostPath", "path"),
			WithMetadata(map[string]any{"annotations": map[string]any{"pv.kubernetes.io/provisioned-by": "kubernetes.io/host-path"}}))
		Eventually(ctx, cluster.History(volume)).Should(HaveObserved(Matching(volume, And(inPhase("Bound"), HaveFinalizer(volumeReclaim)))))
		Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Matching(claim, inPhase("Bound"))))
		return claim, volume
	}

	Specify("A PersistentVolume with the reclaim policy Delete that is deleted before its claim must remain until its storage is deleted.",
		Behavior("finalizers.volume-honors-reclaim-policy", Extended, KCM, Volume, Since("1.33"), Source("KEP-2644"),
			Promise("The finalizer will only be removed after the plugin successfully deletes the in-tree volume.")), func(ctx SpecContext) {
			// The provisioner deletes directories in /tmp only. There is none of this name.
			claim, deletable := provisioned(ctx, "deletable", "/tmp/deletion-conformance-"+rand.String(20))
			stuckClaim, stuck := provisioned(ctx, "stuck", "/deletion-conformance-has-nothing-here")

			for _, object := range []*Object{deletable, stuck, claim, stuckClaim} {
				cluster.Delete(ctx, object)
			}

			Eventually(ctx, cluster.History(deletable)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(
				HaveObserved(Terminating(deletable), Deleted(deletable)))
			Eventually(ctx, cluster.History(stuck)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(
				HaveObserved(Matching(stuck, And(BeTerminating(), inPhase("Failed")))))
			Expect(cluster.Get(ctx, stuck)).To(And(BeTerminating(), HaveFinalizer(volumeReclaim)))

			cluster.Update(ctx, stuck, WithField("Retain", "spec", "persistentVolumeReclaimPolicy"))
			Eventually(ctx, cluster.History(stuck)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(HaveObserved(Deleted(stuck)))
		})

	Specify("A PersistentVolume with the reclaim policy Delete must be deleted after its claim, and must remain until its storage is deleted.",
		Behavior("finalizers.volume-deleted-with-claim", Extended, KCM, Volume, Since("1.33"), Source(persistentVolumes),
			Promise("deletion removes both the PersistentVolume object from Kubernetes, as well as the associated storage asset in the external "+
				"infrastructure.")), func(ctx SpecContext) {
			claim, deletable := provisioned(ctx, "deletable", "/tmp/deletion-conformance-"+rand.String(20))
			stuckClaim, stuck := provisioned(ctx, "stuck", "/deletion-conformance-has-nothing-here")

			cluster.Delete(ctx, claim)
			cluster.Delete(ctx, stuckClaim)

			Eventually(ctx, cluster.History(deletable)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(HaveObserved(Deleted(deletable)))
			Eventually(ctx, cluster.History(stuck)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(
				HaveObserved(Matching(stuck, inPhase("Failed"))))
			Expect(cluster.Get(ctx, stuck)).NotTo(BeTerminating())
			cluster.Update(ctx, stuck, WithField("Retain", "spec", "persistentVolumeReclaimPolicy"))
		})

	Specify("A PersistentVolume of a CSI driver that was created without a provisioner becomes Released, and not Failed, when its claim is deleted.",
		Behavior("finalizers.volume-external-deleter", Observed, KCM, Volume, Since("1.31"), Source("kubernetes#121799")), func(ctx SpecContext) {
			created := func(name string) (claim, volume *Object) {
				GinkgoHelper()
				claim = cluster.Create(ctx, fixtures.PersistentVolumeClaim(name))
				volume = cluster.Create(ctx, fixtures.CSIVolumeFor(name, claim), WithField("Delete", "spec", "persistentVolumeReclaimPolicy"))
				Eventually(ctx, cluster.History(volume)).Should(HaveObserved(Matching(volume, inPhase("Bound"))))
				return claim, volume
			}
			claim, volume := created("claim")
			laterClaim, later := created("later")
			for _, each := range []*Object{claim, laterClaim} {
				Eventually(ctx, cluster.History(each)).Should(HaveObserved(Matching(each, inPhase("Bound"))))
			}

			cluster.Delete(ctx, claim)
			Eventually(ctx, cluster.History(volume)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(
				HaveObserved(Matching(volume, inPhase("Released"))))
			cluster.Delete(ctx, laterClaim)
			Eventually(ctx, cluster.History(later)).WithTimeout(cluster.Session().AtLeast(reclaiming)).Should(
				HaveObserved(Matching(later, inPhase("Released"))))

			Expect(cluster.Get(ctx, volume)).To(And(BeSameObjectAs(volume), inPhase("Released")))
		})
})

// reclaiming is how long the volume controller may take: after a conflict it continues with its resync, every 15 s.
const reclaiming = time.Minute

var _ = Describe("Protection of VolumeAttributesClasses", func() {
	cluster := UseCluster()

	Specify("A VolumeAttributesClass used by a claim or volume must keep the finalizer kubernetes.io/vac-protection "+
		"until that claim or volume is removed.",
		Behavior("finalizers.volume-attributes-class-in-use", Extended, KCM, Volume, Class, Since("1.34"),
			Source("KEP-3751"), Promise("While a VolumeAttributesClass is referenced by any PVC, we will prevent the object from being deleted by "+
				"adding a finalizer `kubernetes.io/vac-protection`.")), func(ctx SpecContext) {
			ofClaim := cluster.Create(ctx, fixtures.VolumeAttributesClass("of-claim"))
			ofVolume := cluster.Create(ctx, fixtures.VolumeAttributesClass("of-volume"))
			free := cluster.Create(ctx, fixtures.VolumeAttributesClass("free"))
			named := func(class *Object) ObjectOption {
				return WithField(class.GetName(), "spec", "volumeAttributesClassName")
			}
			claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("claim"), named(ofClaim))
			volume := cluster.Create(ctx, fixtures.CSIVolume("volume"), named(ofVolume))
			// The controllers share a cache: when the protection of later objects has ended, these are known.
			laterClaim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("later"))
			laterVolume := cluster.Create(ctx, fixtures.CSIVolume("later"))
			for _, later := range []*Object{laterClaim, laterVolume} {
				cluster.Delete(ctx, later)
				Eventually(ctx, cluster.History(later)).Should(HaveObserved(Deleted(later)))
			}

			for _, class := range []*Object{ofClaim, ofVolume, free} {
				cluster.Delete(ctx, class)
			}
			Eventually(ctx, cluster.History(free)).Should(HaveObserved(Terminating(free), Deleted(free)))
			kept := And(BeTerminating(), HaveFinalizers(classProtection))
			Expect(cluster.Get(ctx, ofClaim)).To(kept)
			Expect(cluster.Get(ctx, ofVolume)).To(kept)

			cluster.Delete(ctx, claim)
			cluster.Delete(ctx, volume)
			Eventually(ctx, cluster.History(ofClaim, ofVolume)).Should(HaveObserved(Each(Deleted, ofClaim, ofVolume)))
		})
})

var _ = Describe("Protection of ServiceCIDRs", Serial, func() {
	cluster := UseCluster()

	// Disruptive, because any new Service may get one of its addresses.
	Specify("A deleted ServiceCIDR with allocated Service addresses must remain, with its Ready condition False.",
		Behavior("finalizers.service-cidr-in-use", Extended, KCM, Admin, Since("1.33"), Disruptive,
			Source("tasks/network/extend-service-ip-ranges"),
			Promise("You cannot delete a ServiceCIDR if there are IPAddresses that depend on the ServiceCIDR.")), func(ctx SpecContext) {
			addresses, address := documented(addressOf(cluster.Create(ctx, fixtures.Service("any"))))
			cidr := cluster.Create(ctx, fixtures.ServiceCIDR("cidr"), WithField([]any{addresses}, "spec", "cidrs"))
			Eventually(ctx, cluster.History(cidr)).Should(HaveObserved(Matching(cidr, HaveCondition("Ready"))))
			service := fixtures.Service("service")
			withAddress(address)(service)
			Eventually(ctx, func() Response { return cluster.TryCreate(ctx, service) }).
				Should(HaveStatusCode(http.StatusCreated), "the allocator uses the ServiceCIDR")

			cluster.Delete(ctx, cidr)

			terminating := And(BeTerminating(), HaveFinalizers("networking.k8s.io/service-cidr-finalizer"),
				HaveConditionFalse("Ready"))
			Eventually(ctx, cluster.History(cidr)).Should(HaveObserved(Terminating(cidr), Matching(cidr, terminating)))
			Expect(cluster.Get(ctx, cidr)).To(terminating)
		})
})

// documented returns a range of addresses for documentation (RFC 5737, RFC 3849) of the family of a Service's address, and one of them.
func documented(like string) (addresses, address string) {
	if strings.Contains(like, ":") {
		return "2001:db8::/124", "2001:db8::7"
	}
	return "198.51.100.0/28", "198.51.100.7"
}

var _ = Describe("Protection of ResourceClaims", func() {
	cluster := UseCluster()

	Specify("An allocated ResourceClaim must keep the finalizer resource.kubernetes.io/delete-protection until the "+
		"pods that reserve the claim have ended or are removed.",
		// Allocating a claim requires a cluster-wide permission (update of resourceclaims/binding), which tenants lack.
		Behavior("finalizers.resource-claim-in-use", Extended, KCM, Admin, Since("1.34"),
			Source("pkg/controller/resourceclaim/controller.go")), func(ctx SpecContext) {
			claim, pod := reservedClaim(ctx, cluster, "of-running")
			ofEnded, ended := reservedClaim(ctx, cluster, "of-ended")

			cluster.Delete(ctx, claim)
			cluster.Delete(ctx, ofEnded)
			workloads.SetPhase(ctx, cluster, ended, "Succeeded")
			// The controller needs as many steps for this claim as for the other.
			Eventually(ctx, cluster.History(ofEnded)).Should(HaveObserved(Terminating(ofEnded), Deleted(ofEnded)))
			Expect(cluster.Get(ctx, claim)).To(And(BeTerminating(), HaveFinalizers("resource.kubernetes.io/delete-protection")))

			cluster.Delete(ctx, pod, Grace(0))
			Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Terminating(claim), Deleted(claim)))
		})
})

// reservedClaim is an allocated ResourceClaim and the pod that reserves it.
func reservedClaim(ctx context.Context, cluster *Cluster, name string) (claim, pod *Object) {
	GinkgoHelper()
	claim = cluster.Create(ctx, fixtures.ResourceClaim(name))
	pod = cluster.Create(ctx, fixtures.GhostBoundPod(name), WithField([]any{
		map[string]any{"name": "device", "resourceClaimName": claim.GetName()},
	}, "spec", "resourceClaims"))
	reserved := func(object *Object) {
		WithField(map[string]any{}, "status", "allocation")(object)
		WithField([]any{map[string]any{
			"resource": "pods", "name": pod.GetName(), "uid": string(pod.GetUID()),
		}}, "status", "reservedFor")(object)
	}
	Expect(cluster.TryUpdate(ctx, claim, reserved, "status")).To(HaveStatusCode(http.StatusOK))
	return claim, pod
}

var _ = Describe("Protection of PodGroups", func() {
	cluster := UseCluster()

	Specify("A PodGroup must keep the finalizer scheduling.k8s.io/podgroup-protection until its pods have ended or are removed.",
		Behavior("finalizers.pod-group-in-use", Extended, KCM, Since("1.37"),
			Source("pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go")), func(ctx SpecContext) {
			const finalizer = "scheduling.k8s.io/podgroup-protection"
			used := cluster.Create(ctx, fixtures.PodGroup("used"))
			if len(used.GetFinalizers()) == 0 {
				Skip("the server does not protect PodGroups (GenericWorkload)")
			}
			free := cluster.Create(ctx, fixtures.PodGroup("free"))
			inGroup := WithField(used.GetName(), "spec", "schedulingGroup", "podGroupName")
			ended := cluster.Create(ctx, fixtures.GhostBoundPod("ended"), inGroup)
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), inGroup, WithLabel(Domain+"/group", used.GetName()))
			workloads.SetPhase(ctx, cluster, ended, "Succeeded")
			// Controllers share a cache of pods: when the pod is counted, it is known.
			budget := cluster.Create(ctx, fixtures.PodDisruptionBudgetOf(1, "budget", Domain+"/group", used.GetName()))
			Eventually(ctx, cluster.History(budget)).Should(HaveObserved(Matching(budget, HaveJSONPath("{.status.expectedPods}", "1"))))

			cluster.Delete(ctx, used)
			cluster.Delete(ctx, free)
			Eventually(ctx, cluster.History(free)).Should(HaveObserved(Terminating(free), Deleted(free)))
			Expect(cluster.Get(ctx, used)).To(And(BeTerminating(), HaveFinalizers(finalizer)))

			cluster.Delete(ctx, pod, Grace(0))
			Eventually(ctx, cluster.History(used)).Should(HaveObserved(Terminating(used), Deleted(used)))
		})
})
