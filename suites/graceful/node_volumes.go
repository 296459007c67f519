package graceful

import (
	"path"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Volumes of pods", func() {
	cluster := UseCluster()

	// notes replaces the volume of a pod's notes.
	notes := func(emptyDir map[string]any) ObjectOption {
		return WithField([]any{map[string]any{"name": "notes", "emptyDir": emptyDir}}, "spec", "volumes")
	}

	Specify("A deleted pod must remain until its volumes are unmounted.",
		Behavior("graceful.node.volume-first", Core, Node, OwnCluster, Source("concepts/workloads/controllers/statefulset"),
			Promise("This enables the Pod to cleanly unmount all volumes before the PVCs are deleted")), func(ctx SpecContext) {
			// The kubelet cannot unmount a volume of which another pod has a file open.
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}),
				notes(map[string]any{"medium": string(corev1.StorageMediumMemory)}))
			volumes := path.Join("/var/lib/kubelet/pods", string(pod.GetUID()), "volumes")
			holder := workloads.RunPod(ctx, cluster, fixtures.NodePod("holder", fixtures.Container{
				Name: "main", First: "exec 3< " + path.Join(volumes, "kubernetes.io~empty-dir/notes/ready-main"), OnTerm: "exit 0",
			}), OnNode(nodes.Of(pod)), seeing(volumes))

			cluster.Delete(ctx, pod)
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Terminating(pod), Matching(pod, workloads.HaveTerminatedContainers())))
			awaitLaterTermination(ctx, cluster, nodes.Of(pod))
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), workloads.HaveTerminatedContainers()))

			cluster.Delete(ctx, holder)
			workloads.AwaitDeletion(ctx, cluster, pod)
		})

	Specify("A pod whose emptyDir volume exceeds its limit must be Failed without the condition DisruptionTarget, and must remain.",
		Behavior("graceful.node.evicted", Extended, Node, Slow, Source(disruptions),
			Promise("In all other disruption scenarios, like eviction due to exceeding Pod container limits, Pods don't receive the `DisruptionTarget` condition")),
		func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", First: "dd if=/dev/zero of=/notes/fill bs=1M count=4",
			}), notes(map[string]any{"sizeLimit": "1Mi"}))
			workloads.AwaitStart(ctx, cluster, pod, nodes.HaveStartTime())
			node := cluster.Get(ctx, fixtures.Node(nodes.Of(cluster.Get(ctx, pod))))
			if _, measured, _ := unstructured.NestedString(node.Object, "status", "capacity", string(corev1.ResourceEphemeralStorage)); !measured {
				Skip("the kubelet does not measure the storage of pods (localStorageCapacityIsolation)")
			}

			workloads.AwaitStart(ctx, cluster, pod, And(HavePhase(corev1.PodFailed), workloads.HaveTerminatedContainers()))
			awaitLaterTermination(ctx, cluster, node.GetName())
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), HavePhase(corev1.PodFailed), Not(BeTerminating()),
				Not(HaveCondition(string(corev1.DisruptionTarget)))))
		})
})

// awaitLaterTermination is a barrier of a kubelet: it runs a pod, deletes it, and waits for its removal. The kubelet then has completed
// the terminations that began before, except those that something blocks.
func awaitLaterTermination(ctx SpecContext, cluster *Cluster, node string) {
	GinkgoHelper()
	later := workloads.RunPod(ctx, cluster, fixtures.NodePod("later", fixtures.Container{Name: "main", OnTerm: "exit 0"}), OnNode(node))
	cluster.Delete(ctx, later)
	workloads.AwaitDeletion(ctx, cluster, later)
}

// mounting mounts a PersistentVolumeClaim in the first container of a pod.
func mounting(claim *Object) ObjectOption {
	return mountingIn(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": claim.GetName()}}, map[string]any{
		"mountPath": "/claim", "readOnly": true,
	})
}

// seeing mounts a directory of its node in the first container of a pod, which runs as root, with what is mounted there later.
func seeing(directory string) ObjectOption {
	return func(pod *Object) {
		mountingIn(map[string]any{"hostPath": map[string]any{"path": directory}}, map[string]any{
			"mountPath": directory, "mountPropagation": string(corev1.MountPropagationHostToContainer),
		})(pod)
		WithField(map[string]any{"runAsUser": int64(0)}, "spec", "securityContext")(pod)
	}
}

// mountingIn adds a volume to a pod, and mounts it in the first container.
func mountingIn(volume, mount map[string]any) ObjectOption {
	const name = "mounted"
	volume["name"], mount["name"] = name, name
	return func(pod *Object) {
		volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
		WithField(append(volumes, volume), "spec", "volumes")(pod)
		inFirstContainer(func(container map[string]any) {
			container["volumeMounts"] = append(container["volumeMounts"].([]any), mount)
		})(pod)
	}
}

// inFirstContainer changes the first container of a pod.
func inFirstContainer(change func(container map[string]any)) ObjectOption {
	return func(pod *Object) {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		change(containers[0].(map[string]any))
		WithField(containers, "spec", "containers")(pod)
	}
}
