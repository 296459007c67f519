package graceful

import (
	"crypto/sha256"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Pods that have not started", func() {
	cluster := UseCluster()

	Specify("A pod deleted while pulling an image or running an init container must end as Failed without starting its main containers.",
		Behavior("graceful.node.never-started", Core, Node, Source(podLifecycle), Promise(terminalPhase)), func(ctx SpecContext) {
			pulling := cluster.Create(ctx, fixtures.NodePod("pulling", fixtures.Container{Name: "main", Image: fixtures.MissingImage}))
			initialising := cluster.Create(ctx, fixtures.NodePod("initialising",
				fixtures.Container{Name: "init", OnTerm: "exit 0", Init: true}, fixtures.Container{Name: "main"}), WithGrace(3))
			workloads.AwaitStart(ctx, cluster, pulling, nodes.HaveStartTime())
			workloads.AwaitStart(ctx, cluster, initialising, workloads.HaveRunning("init"))

			cluster.Delete(ctx, pulling)
			cluster.Delete(ctx, initialising)

			for _, pod := range []*Object{pulling, initialising} {
				workloads.AwaitDeletion(ctx, cluster, pod, HavePhase(corev1.PodFailed))
				Expect(cluster.History(pod)).NotTo(HaveObserved(Matching(pod, workloads.HaveStarted("main"))))
			}
		})

	// withMissingVolume creates a pod that waits for a volume.
	withMissingVolume := func(ctx SpecContext) *Object {
		GinkgoHelper()
		missing := map[string]any{"name": "notes", "configMap": map[string]any{"name": "missing"}}
		pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithField([]any{missing}, "spec", "volumes"))
		workloads.AwaitStart(ctx, cluster, pod, nodes.HaveStartTime())
		return pod
	}

	Specify("A deleted pod with a volume that was never mounted must be removed.",
		Behavior("graceful.node.missing-volume", Core, Node, Source(podLifecycle), Promise(deletesComplete)), func(ctx SpecContext) {
			pod := withMissingVolume(ctx)

			cluster.Delete(ctx, pod)

			workloads.AwaitDeletion(ctx, cluster, pod)
		})

	Specify("A deleted pod that waits for a volume is removed before its grace period expires.",
		Behavior("graceful.node.missing-volume-not-awaited", Observed, Node, Source("pkg/kubelet/volumemanager/volume_manager.go")), func(ctx SpecContext) {
			pod := withMissingVolume(ctx)

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(60))).Object

			workloads.AwaitDeletion(ctx, cluster, pod)
			Expect(cluster.Now(ctx)).To(BeTemporally("<", terminating.GetDeletionTimestamp().Time), "the pod is removed before its grace period expires")
		})
})

var _ = Describe("Admission by a kubelet", func() {
	cluster := UseCluster()

	Specify("A kubelet rejects a pod that needs the host port of a pod that it ends, and admits one when the containers have ended.",
		Behavior("graceful.node.resources-until-ended", Observed, Node, PodNetwork, Source("pkg/kubelet/kubelet_pods.go")), func(ctx SpecContext) {
			gate := workloads.StartPod(ctx, cluster, fixtures.NodePod("gate", fixtures.Gate("main")))
			here, port := OnNode(nodes.Of(gate)), onHostPort(cluster.Namespace())
			ending := workloads.RunPod(ctx, cluster, fixtures.NodePod("ending", fixtures.Container{
				Name: "main", OnTerm: fixtures.WaitAtGate(workloads.AddressOf(gate)) + "; exit 0",
			}), WithGrace(300), here, port)
			cluster.Update(ctx, ending, WithField(int64(1), "spec", "activeDeadlineSeconds"))
			workloads.AwaitReady(ctx, cluster, gate) // the container has received SIGTERM

			early := cluster.Create(ctx, fixtures.NodePod("early", fixtures.Container{Name: "main", OnTerm: "exit 0"}), here, port)
			workloads.AwaitStart(ctx, cluster, early, HavePhase(corev1.PodRunning, corev1.PodFailed))
			Expect(cluster.Get(ctx, early)).To(And(HavePhase(corev1.PodFailed), HaveStatus("reason", "NodePorts")))

			cluster.Delete(ctx, gate)
			workloads.AwaitStart(ctx, cluster, ending, And(HavePhase(corev1.PodFailed), workloads.HaveTerminatedContainers()))
			workloads.RunPod(ctx, cluster, fixtures.NodePod("late", fixtures.Container{Name: "main", OnTerm: "exit 0"}), here, port)
		})

	Specify("A pod that its kubelet ends to admit a critical pod becomes Failed, with the condition DisruptionTarget.",
		Behavior("graceful.node.critical-preempts", Observed, Node, OwnCluster, Disruptive, Disturbs(Node), Source("pkg/kubelet/preemption/preemption.go")),
		Serial, func(ctx SpecContext) {
			// Of all pods of the node, the victim is the one whose end sets free what is missing, which is more than any other requests.
			node := nodes.Of(workloads.RunPod(ctx, cluster, fixtures.NodePod("any", fixtures.Container{Name: "main", OnTerm: "exit 0"})))
			here, most := OnNode(node), requestingMost(cluster.Get(ctx, fixtures.Node(node)))
			victim := workloads.RunPod(ctx, cluster, fixtures.NodePod("victim", fixtures.Container{Name: "main", OnTerm: "exit 7"}), here, most)

			workloads.RunPod(ctx, cluster, fixtures.NodePod("critical", fixtures.Container{Name: "main", OnTerm: "exit 0"}), here, most,
				WithField("system-node-critical", "spec", "priorityClassName"))

			workloads.AwaitStart(ctx, cluster, victim, And(HavePhase(corev1.PodFailed), workloads.HaveTerminatedContainers()))
			Expect(cluster.Get(ctx, victim)).To(HaveConditionSaying(string(corev1.DisruptionTarget), corev1.PodReasonTerminationByKubelet))
		})
})

// onHostPort gives the first container of a pod a port of its node, on a loopback address that nothing but this namespace uses.
func onHostPort(namespace string) ObjectOption {
	hash := sha256.Sum256([]byte(namespace))
	return inFirstContainer(func(container map[string]any) {
		container["ports"] = []any{map[string]any{
			"containerPort": int64(8080), "hostPort": int64(28471), "hostIP": fmt.Sprintf("127.%d.%d.%d", hash[0], hash[1], hash[2]),
		}}
	})
}

// requestingMost makes the first container of a pod request three quarters of the memory of a node.
func requestingMost(node *Object) ObjectOption {
	GinkgoHelper()
	allocatable, _, _ := unstructured.NestedString(node.Object, "status", "allocatable", string(corev1.ResourceMemory))
	memory, err := resource.ParseQuantity(allocatable)
	Expect(err).NotTo(HaveOccurred(), "allocatable memory of the node")
	most := fmt.Sprint(memory.Value() / 4 * 3)
	return inFirstContainer(func(container map[string]any) {
		for _, kind := range []string{"requests", "limits"} {
			container["resources"].(map[string]any)[kind].(map[string]any)["memory"] = most
		}
	})
}

var _ = Describe("Static pods", func() {
	cluster := UseCluster()

	Specify("A deleted mirror pod of a static pod must be recreated with a new uid, and its containers must continue to run.",
		Behavior("graceful.node.mirror-pod-recreated", Core, Node, Source("tasks/configure-pod-container/static-pod"),
			Promise("If you try to use `kubectl` to delete the mirror Pod from the API server, the kubelet _doesn't_ remove the static Pod")), func(ctx SpecContext) {
			static := nodes.RunStaticPod(ctx, cluster, fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)
			containers := workloads.ContainersOf(cluster.Get(ctx, mirror))

			cluster.Delete(ctx, mirror)

			another := nodes.AwaitMirrorPods(ctx, cluster, static, 2)[1]
			Expect(another).NotTo(BeSameObjectAs(mirror))
			workloads.AwaitReady(ctx, cluster, another)
			Expect(workloads.ContainersOf(cluster.Get(ctx, another))).To(Equal(containers), "the containers continue to run")
		})

	Specify("The containers of a static pod whose manifest is removed must receive SIGTERM, and its mirror pod must be removed.",
		Behavior("graceful.node.static-pod-removed", Core, Node, PodNetwork, Source("tasks/configure-pod-container/static-pod"),
			Promise("The running kubelet periodically scans the configured directory ... for changes and adds/removes Pods as files appear/disappear in "+
				"this directory.")), func(ctx SpecContext) {
			static := nodes.RunStaticPod(ctx, cluster, fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: fixtures.Ring() + "; exit 0"}))
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)
			listener := cluster.Create(ctx, fixtures.NodePod("listener", fixtures.Listener("main", workloads.AddressOf(cluster.Get(ctx, mirror)))))

			nodes.EndStaticPod(ctx, cluster, static)

			workloads.AwaitReady(ctx, cluster, listener)
			Eventually(ctx, cluster.History(mirror)).Should(HaveObserved(Deleted(mirror)))
		})

	Specify("A static pod whose manifest returns while its containers terminate must run again.",
		Behavior("graceful.node.static-pod-recreated", Core, Node, PodNetwork, Source("tasks/configure-pod-container/static-pod"),
			Promise("The running kubelet periodically scans the configured directory ... for changes and adds/removes Pods as files appear/disappear in "+
				"this directory.")), func(ctx SpecContext) {
			manifest := fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: fixtures.Ring() + "; sleep 3; exit 0"})
			WithField("Always", "spec", "restartPolicy")(manifest)
			static := nodes.RunStaticPod(ctx, cluster, manifest)
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)
			containers := workloads.ContainersOf(cluster.Get(ctx, mirror))
			listener := workloads.StartPod(ctx, cluster, fixtures.NodePod("listener", fixtures.Listener("main", workloads.AddressOf(cluster.Get(ctx, mirror)))))
			nodes.EndStaticPod(ctx, cluster, static)
			workloads.AwaitReady(ctx, cluster, listener) // the container has received SIGTERM

			nodes.RunStaticPod(ctx, cluster, manifest)

			nodes.AwaitMirrorPod(ctx, cluster, static, And(
				HaveCondition(string(corev1.PodReady)), WithTransform(workloads.ContainersOf, Not(Equal(containers)))))
		})

	Specify("The containers of a static pod whose manifest changes receive SIGTERM, and the new containers start only after they have ended.",
		Behavior("graceful.node.static-pod-updated", Observed, Node, PodNetwork, Source("pkg/kubelet/pod_workers.go")), func(ctx SpecContext) {
			gate := workloads.StartPod(ctx, cluster, fixtures.NodePod("gate", fixtures.Gate("main")))
			manifest := fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: fixtures.WaitAtGate(workloads.AddressOf(gate)) + "; exit 0"})
			WithGrace(300)(manifest)
			static := nodes.RunStaticPod(ctx, cluster, manifest)
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)

			nodes.RunStaticPod(ctx, cluster, fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			workloads.AwaitReady(ctx, cluster, gate) // the container has received SIGTERM
			awaitLaterTermination(ctx, cluster, nodes.Of(mirror))
			Expect(nodes.MirrorPods(ctx, cluster, static)).To(HaveLen(1), "the new containers have not started")

			cluster.Delete(ctx, gate)
			workloads.AwaitReady(ctx, cluster, nodes.AwaitMirrorPods(ctx, cluster, static, 2)[1])
		})
})
