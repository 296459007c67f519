package kubectl

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/kubectl"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// drainReference is the page of the documentation on kubectl drain.
const drainReference = "reference/kubectl/generated/kubectl_drain"

// group is the label with which a drain selects pods of a node.
const group = Domain + "/group"

var _ = Describe("Drain", func() {
	cluster := UseCluster()

	// pod creates a pod on a node that is deleted immediately when it is evicted.
	pod := func(ctx SpecContext, node *Object, name string, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, fixtures.GhostBoundPod(name), append([]ObjectOption{OnNode(node.GetName()), WithGrace(0)}, options...)...)
	}
	// managed adds a controller to pods.
	managed := func(ctx SpecContext) ObjectOption {
		return OwnedBy(cluster.Create(ctx, fixtures.ConfigMap("controller")), Controlling)
	}
	// drain starts to drain the spec's pods from a node, or a group of them.
	drain := func(ctx SpecContext, command *kubectl.Command, node *Object, of string, flags ...string) *kubectl.Process {
		GinkgoHelper()
		selector := kubectl.Selector(cluster)
		if of != "" {
			selector += "," + group + "=" + of
		}
		return command.Start(ctx, append([]string{"drain", node.GetName(), "--pod-selector", selector}, flags...)...)
	}

	Specify("The kubectl drain command must cordon the node, evict its pods or delete the pods with "+
		"--disable-eviction, and send the value of --grace-period.",
		Behavior("kubectl.drain", Core, Kubectl, SimulatedNode,
			Source(drainReference),
			Promise("The given node will be marked unschedulable to prevent new pods from arriving. 'drain' evicts the pods if the "+
				"API server supports")), func(ctx SpecContext) {
			command, node, managed := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node")), managed(ctx)
			plain := pod(ctx, node, "plain", managed, WithLabel(group, "plain"))
			slow := pod(ctx, node, "slow", managed, WithLabel(group, "slow"), WithGrace(60))
			deleted := pod(ctx, node, "deleted", managed, WithLabel(group, "deleted"), WithGrace(60))

			evicting := drain(ctx, command, node, "plain").Wait(ctx)
			hurrying := drain(ctx, command, node, "slow", "--grace-period=0").Wait(ctx)
			deleting := drain(ctx, command, node, "deleted", "--grace-period=0", "--disable-eviction").Wait(ctx)

			Expect(evicting).To(And(kubectl.HaveExitCode(0), kubectl.HaveEvicted(plain), kubectl.HaveDeleted()))
			Expect(evicting.DeleteOptions()).To(ConsistOf(HaveField("GracePeriodSeconds", BeNil())))
			Expect(evicting.Writes()).To(Equal([]string{"PATCH nodes", "POST pods/eviction"}))
			Expect(cluster.Get(ctx, node)).To(HaveJSONPath("{.spec.unschedulable}", "true"))
			Expect(hurrying).To(And(kubectl.HaveExitCode(0), kubectl.HaveEvicted(slow), kubectl.HaveDeleted()))
			Expect(deleting).To(And(kubectl.HaveExitCode(0), kubectl.HaveEvicted(), kubectl.HaveDeleted(deleted)))
			Expect(append(hurrying.DeleteOptions(), deleting.DeleteOptions()...)).To(
				HaveEach(HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(0)))))
		})

	Specify("The kubectl drain command must retry evictions that are refused with 429 until --timeout expires.",
		Behavior("kubectl.drain-retries", Core, Kubectl, SimulatedNode,
			Source("concepts/workloads/pods/disruptions"),
			Promise("the tool periodically retries all failed requests until all Pods on the target node are terminated, or until a "+
				"configurable timeout is reached")), func(ctx SpecContext) {
			command, node, managed := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node")), managed(ctx)
			allowsNone(ctx, cluster, cluster.Create(ctx, fixtures.PodDisruptionBudget("stays", group, "limited")))
			budget := allowsNone(ctx, cluster, cluster.Create(ctx, fixtures.PodDisruptionBudget("goes", group, "patient")))
			kept := workloads.SetPhase(ctx, cluster, pod(ctx, node, "kept", managed, WithLabel(group, "limited")), "Running")
			evicted := workloads.SetPhase(ctx, cluster, pod(ctx, node, "evicted", managed, WithLabel(group, "patient")), "Running")

			const timeout = 4 * time.Second
			start := time.Now()
			limited, patient := drain(ctx, command, node, "limited", "--timeout="+timeout.String()), drain(ctx, command, node, "patient")
			patient.AwaitRequest(ctx, HaveField("StatusCode", http.StatusTooManyRequests))
			cluster.Delete(ctx, budget)

			Expect(limited.Wait(ctx)).To(And(kubectl.HaveExitCode(1), kubectl.HaveEvicted(kept)))
			Expect(time.Since(start)).To(BeNumerically(">=", timeout), "kubectl does not give up before --timeout expires")
			Expect(patient.Wait(ctx)).To(And(kubectl.HaveExitCode(0), kubectl.HaveEvicted(evicted, evicted)))
			Expect(cluster.Get(ctx, kept)).NotTo(BeTerminating())
		})

	Specify("The kubectl drain command must require a flag for DaemonSet pods, pods with emptyDir volumes and "+
		"unmanaged pods, and must skip mirror pods.",
		Behavior("kubectl.drain-flags", Core, Kubectl, SimulatedNode,
			Source(drainReference),
			Promise("drain will not proceed without --ignore-daemonsets ... drain will not delete any pods unless you use --force")), func(ctx SpecContext) {
			command, node, managed := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node")), managed(ctx)
			local, unmanaged := pod(ctx, node, "local", managed, withEmptyDir), pod(ctx, node, "unmanaged")
			daemons := cluster.Create(ctx, fixtures.DaemonSet("daemons", group, "no-node"))
			daemon := pod(ctx, node, "daemon", OwnedBy(daemons, Controlling), selectedBy(daemons), Held)
			cluster.Delete(ctx, daemon) // so that it does not matter that its controller would delete it, too
			mirror := pod(ctx, node, "mirror", managed, mirrored)

			for _, flags := range [][]string{
				{"--ignore-daemonsets", "--delete-emptydir-data"}, {"--ignore-daemonsets", "--force"}, {"--delete-emptydir-data", "--force"},
			} {
				Expect(drain(ctx, command, node, "", flags...).Wait(ctx)).To(And(kubectl.HaveExitCode(1), kubectl.HaveEvicted()), "%s", flags)
			}
			whole := drain(ctx, command, node, "", "--ignore-daemonsets", "--delete-emptydir-data", "--force").Wait(ctx)

			Expect(whole).To(And(kubectl.HaveExitCode(0), kubectl.HaveEvicted(local, unmanaged)))
			Expect(cluster.Get(ctx, mirror)).NotTo(BeTerminating())
		})
})

// selectedBy gives a pod the labels that a workload selects.
func selectedBy(workload *Object) ObjectOption {
	return func(pod *Object) {
		labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
		for name, value := range labels {
			WithLabel(name, value)(pod)
		}
	}
}

// allowsNone writes the status of a budget, as the disruption controller does after a while. Without a status an eviction is refused for a
// different reason.
func allowsNone(ctx SpecContext, cluster *Cluster, budget *Object) *Object {
	GinkgoHelper()
	status := map[string]any{"observedGeneration": budget.GetGeneration(), "disruptionsAllowed": 0, "desiredHealthy": 1, "expectedPods": 1}
	return cluster.Patch(ctx, budget, types.MergePatchType, map[string]any{"status": status}, "status").Object
}

// withEmptyDir adds a local volume to a pod.
func withEmptyDir(pod *Object) {
	WithField([]any{map[string]any{"name": "scratch", "emptyDir": map[string]any{}}}, "spec", "volumes")(pod)
}

// mirrored makes a pod a mirror pod, which has no ServiceAccount.
func mirrored(pod *Object) {
	pod.SetAnnotations(map[string]string{corev1.MirrorPodAnnotationKey: "yes"})
	unstructured.RemoveNestedField(pod.Object, "spec", "serviceAccountName")
}
