package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

var _ = Describe("Volumes that are attached to nodes", func() {
	cluster := UseCluster()

	// unused is the status of a node that uses no volumes.
	unused := map[string]any{"volumesInUse": nil}
	// mounted creates a pod on a node, and a volume that is attached to the node and in use there.
	mounted := func(ctx SpecContext, name string) (node, pod, attachment *Object) {
		GinkgoHelper()
		claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim(name))
		volume := cluster.Create(ctx, fixtures.CSIVolumeFor(name, claim))
		Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Matching(claim, HaveJSONPath("{.status.phase}", "Bound"))))
		node = cluster.Create(ctx, fixtures.Node(name), managedAttachment)
		cluster.SetStatus(ctx, node, map[string]any{"volumesInUse": []any{fixtures.AttachedName(volume)}})
		manifest := fixtures.VolumeAttachment(volume, node)
		attachment = cluster.Create(ctx, manifest, Named(manifest.GetName()))
		cluster.SetStatus(ctx, attachment, map[string]any{"attached": true})
		pod = cluster.Create(ctx, fixtures.GhostBoundPod(name), OnNode(node.GetName()), UsingClaim(claim))
		Eventually(ctx, cluster.History(node)).Should(HaveObserved(
			Matching(node, HaveJSONPath("{.status.volumesAttached[0].name}", fixtures.AttachedName(volume)))))
		return node, pod, attachment
	}

	Specify("The VolumeAttachments of a node with the taint node.kubernetes.io/out-of-service must be deleted after its pods are removed, "+
		"even if the volumes are still mounted.",
		Behavior("graceful.out-of-service-detaches", Core, KCM, SimulatedNode, Volume, Admin, Since("1.28"), Source("KEP-2268"),
			Promise("If the taint is present, the attachdetach reconciler will not wait for 6 minutes to do force detach.")), func(ctx SpecContext) {
			node, pod, attachment := mounted(ctx, "out-of-service")
			_, otherPod, otherAttachment := mounted(ctx, "in-service")

			cluster.Delete(ctx, pod, Grace(0))
			cluster.Delete(ctx, otherPod, Grace(0))
			cluster.Update(ctx, node, tainted(corev1.TaintNodeOutOfService))

			Eventually(ctx, cluster.History(attachment)).Should(HaveObserved(Deleted(attachment)))
			cluster.Settle(ctx)
			Expect(cluster.Get(ctx, otherAttachment)).To(BeSameObjectAs(otherAttachment))
		})

	Specify("The VolumeAttachment of a terminating pod remains while a container of the pod runs or the volume is in use, and is deleted after "+
		"the pod is removed.",
		Behavior("graceful.detaches-after-pod", Observed, KCM, SimulatedNode, Volume, Admin,
			Source("pkg/controller/volume/attachdetach/reconciler")), func(ctx SpecContext) {
			node, pod, attachment := mounted(ctx, "runs")
			usingNode, ended, inUse := mounted(ctx, "in-use")
			laterNode, later, canary := mounted(ctx, "later")
			cluster.SetStatus(ctx, pod, map[string]any{"containerStatuses": []any{map[string]any{
				"name": "main", "image": "any", "imageID": "any", "ready": true, "restartCount": 0, "state": map[string]any{"running": map[string]any{}},
			}}})

			cluster.Delete(ctx, pod)
			cluster.SetStatus(ctx, node, unused)
			cluster.Delete(ctx, ended, Grace(0))
			cluster.Delete(ctx, later, Grace(0))
			cluster.SetStatus(ctx, laterNode, unused)
			Eventually(ctx, cluster.History(canary)).Should(HaveObserved(Deleted(canary)))
			cluster.Settle(ctx)
			Expect(cluster.Get(ctx, attachment)).To(BeSameObjectAs(attachment))
			Expect(cluster.Get(ctx, inUse)).To(BeSameObjectAs(inUse))

			cluster.Delete(ctx, pod, Grace(0))
			cluster.SetStatus(ctx, usingNode, unused)
			Eventually(ctx, cluster.History(attachment, inUse)).Should(HaveObserved(Each(Deleted, attachment, inUse)))
		})

	Specify("The VolumeAttachment of a pod that is removed while the controller manager is stopped is deleted after the start.",
		Behavior("graceful.detaches-after-restart", Observed, KCM, SimulatedNode, Volume, Admin, Disruptive, StopsControllerManager,
			Source("kubernetes#77324")), Serial,
		func(ctx SpecContext) {
			node, pod, attachment := mounted(ctx, "removed")
			cluster.SetStatus(ctx, node, unused)
			start := components.Stop(ctx, cluster, components.ControllerManager)
			cluster.Delete(ctx, pod, Grace(0))

			start(ctx)

			Eventually(ctx, cluster.History(attachment)).WithTimeout(cluster.Session().AtLeast(time.Minute)).Should(HaveObserved(Deleted(attachment)))
		})

	Specify("The VolumeAttachment of a volume that was migrated to CSI is deleted when the controller manager starts, if no pod uses the volume.",
		Behavior("graceful.dangling-attachments", Observed, KCM, SimulatedNode, Volume, Admin, Disruptive, StopsControllerManager,
			Source("kubernetes#102097")), Serial,
		func(ctx SpecContext) {
			node := cluster.Create(ctx, fixtures.Node("node"), managedAttachment, tainted(corev1.TaintNodeOutOfService)) // needs no unmount
			volume := cluster.Create(ctx, fixtures.MigratedVolume("migrated"))
			manifest := fixtures.VolumeAttachment(volume, node)
			attachment := cluster.Create(ctx, manifest, Named(manifest.GetName()))
			start := components.Stop(ctx, cluster, components.ControllerManager)

			start(ctx)

			Eventually(ctx, cluster.History(attachment)).WithTimeout(cluster.Session().AtLeast(time.Minute)).Should(HaveObserved(Deleted(attachment)))
		})

	Specify("The VolumeAttachment of a removed pod is deleted even if the attach/detach controller may not write the status of another node.",
		Behavior("graceful.detach-after-refused-status", Observed, KCM, SimulatedNode, Volume, Admin, Hook,
			Source("pkg/controller/volume/attachdetach/statusupdater")), func(ctx SpecContext) {
			refusedNode, refusedPod, waits := mounted(ctx, "refused")
			node, pod, attachment := mounted(ctx, "written")
			cluster.SetStatus(ctx, refusedNode, unused)
			cluster.SetStatus(ctx, node, unused)
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update), webhooks.OnResources("nodes/status"))
			webhook.Deny(refusedNode, "not yet")
			cluster.Delete(ctx, refusedPod, Grace(0))
			webhook.AwaitReview(ctx, refusedNode)

			cluster.Delete(ctx, pod, Grace(0))

			Eventually(ctx, cluster.History(attachment)).Should(HaveObserved(Deleted(attachment)))
			Expect(cluster.Get(ctx, waits)).To(BeSameObjectAs(waits))
			webhook.Allow(refusedNode)
			Eventually(ctx, cluster.History(waits)).Should(HaveObserved(Deleted(waits)))
		})

	Specify("A VolumeAttachment is deleted if attachRequired of the CSIDriver becomes false while the volume is being attached.",
		Behavior("graceful.attachment-not-required", Observed, KCM, SimulatedNode, Volume, Admin, Slow, Since("1.36"), Source("kubernetes#129572")),
		func(ctx SpecContext) {
			driver := cluster.Prepare(ctx, fixtures.CSIDriver("driver")).GetName()
			claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("claim"))
			volume := cluster.Create(ctx, fixtures.CSIVolumeFor("volume", claim), WithField(driver, "spec", "csi", "driver"))
			Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Matching(claim, HaveJSONPath("{.status.phase}", "Bound"))))
			node := cluster.Create(ctx, fixtures.Node("node"), managedAttachment)
			manifest := fixtures.VolumeAttachment(volume, node)
			attachment := cluster.Create(ctx, manifest, Named(manifest.GetName()), WithField(driver, "spec", "attacher"))
			mounted(ctx, "before") // the controller knows the claim, which was bound before that of this pod
			cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()), UsingClaim(claim))
			mounted(ctx, "after") // the controller is attaching the volume

			cluster.Create(ctx, fixtures.CSIDriver("driver"))
			cluster.Settle(ctx) // the controller learns of drivers and of attachments on separate watches
			cluster.SetStatus(ctx, attachment, map[string]any{"attached": true})

			// The controller compares its volumes with the drivers once a minute.
			Eventually(ctx, cluster.History(attachment)).WithTimeout(cluster.Session().AtLeast(2 * time.Minute)).Should(HaveObserved(Deleted(attachment)))
		})
})

// managedAttachment marks a node as one whose volumes the attach/detach controller attaches, as a kubelet does.
func managedAttachment(node *Object) {
	WithMetadata(map[string]any{"annotations": map[string]any{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}})(node)
}
