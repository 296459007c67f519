package kubectl

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	Specify("The kubectl drain command must cordon the node, evict the pods that --pod-selector selects or delete them with "+
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

	Specify("The kubectl drain command must wait until the pods that it evicts, or deletes with --disable-eviction, are removed.",
		Behavior("kubectl.drain-waits", Core, Kubectl, SimulatedNode,
			Source(drainReference),
			Promise("'drain' waits for graceful termination.")), func(ctx SpecContext) {
			command, node, managed := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node")), managed(ctx)
			for of, flag := range map[string]string{"evicted": "--disable-eviction=false", "deleted": "--disable-eviction"} {
				graceful := pod(ctx, node, of, managed, WithLabel(group, of), WithGrace(300))
				read := And(kubectl.ForObject(http.MethodGet, graceful), HaveField("StatusCode", http.StatusOK))

				draining := drain(ctx, command, node, of, flag)
				draining.AwaitRequest(ctx, read)
				Expect(cluster.Get(ctx, graceful)).To(BeTerminating())
				draining.AwaitRequests(ctx, 2, read)
				cluster.Delete(ctx, graceful, Grace(0))

				Expect(draining.Wait(ctx)).To(kubectl.HaveExitCode(0))
			}
		})

	Specify("The kubectl drain command must change nothing with --dry-run=server or --dry-run=client.",
		Behavior("kubectl.drain-dry-run", Core, Kubectl, SimulatedNode,
			Source(drainReference),
			Promise("If client strategy, only print the object that would be sent, without sending it. If server strategy, submit "+
				"server-side request without persisting the resource.")), func(ctx SpecContext) {
			command, node := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node"))
			kept := pod(ctx, node, "kept", managed(ctx))

			onServer := drain(ctx, command, node, "", "--dry-run=server").Wait(ctx)
			onClient := drain(ctx, command, node, "", "--dry-run=client").Wait(ctx)
			if command.IsAtLeast("1.37") { // earlier ones wait for the removal of the pod
				deleting := drain(ctx, command, node, "", "--dry-run=server", "--disable-eviction").Wait(ctx)
				Expect(deleting).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(kept)))
			}

			Expect(onServer).To(And(kubectl.HaveExitCode(0), kubectl.HaveEvicted(kept)))
			Expect(onServer.DeleteOptions()).To(ConsistOf(HaveField("DryRun", ConsistOf(metav1.DryRunAll))))
			Expect(onClient).To(And(kubectl.HaveExitCode(0), HaveField("Writes()", BeEmpty())))
			Expect(cluster.Get(ctx, kept)).To(BeUnchangedSince(kept))
			Expect(cluster.Get(ctx, node)).NotTo(HaveJSONPath("{.spec.unschedulable}", "true"))
		})

	Specify("The kubectl drain command must not wait for a pod whose deletionTimestamp is older than --skip-wait-for-delete-timeout.",
		Behavior("kubectl.drain-skips-waiting", Core, Kubectl, SimulatedNode,
			Source(drainReference),
			Promise("If pod DeletionTimestamp older than N seconds, skip waiting for the pod.")), func(ctx SpecContext) {
			if behind := time.Until(cluster.Now(ctx)); behind > time.Second {
				Skip(fmt.Sprintf("kubectl uses the clock of this machine, which is %s behind that of the cluster", behind.Round(time.Second)))
			}
			command, node := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node"))
			stuck := pod(ctx, node, "stuck", managed(ctx), WithGrace(1))

			Expect(drain(ctx, command, node, "", "--skip-wait-for-delete-timeout=1").Wait(ctx)).To(kubectl.HaveExitCode(0))

			Expect(cluster.Get(ctx, stuck)).To(BeTerminating())
		})

	Specify("The kubectl drain command must wait for a terminating pod in a terminating namespace.",
		Behavior("kubectl.drain-terminating-namespace", Core, Kubectl, SimulatedNode, Namespace,
			Source(drainReference),
			Promise("'drain' waits for graceful termination.")), func(ctx SpecContext) {
			command, node := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node"))
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"), Held)
			in := cluster.In(namespace)
			in.Create(ctx, fixtures.ServiceAccount(), Named(fixtures.ServiceAccountName)) // of the pod
			owner := in.Create(ctx, fixtures.ConfigMap("controller"))
			terminating := in.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()), WithGrace(300), OwnedBy(owner, Controlling))
			in.Delete(ctx, terminating)
			cluster.Delete(ctx, namespace)

			draining := drain(ctx, command, node, "")
			draining.AwaitRequest(ctx, kubectl.ForObject(http.MethodGet, terminating))
			in.Delete(ctx, terminating, Grace(0))

			Expect(draining.Wait(ctx)).To(kubectl.HaveExitCode(0))
		})

	Specify("The kubectl drain command must fail when a read of an evicted pod returns an error.",
		Behavior("kubectl.drain-api-error", Core, Kubectl, SimulatedNode,
			Source(drainReference),
			Promise("'drain' waits for graceful termination. You should not operate on the machine until the command completes.")), func(ctx SpecContext) {
			command, node := kubectl.New(ctx, cluster), cluster.Create(ctx, fixtures.Node("node"))
			graceful := pod(ctx, node, "graceful", managed(ctx), WithGrace(300))
			command.Fail(http.MethodGet, graceful)

			draining := drain(ctx, command, node, "").Wait(ctx)

			Expect(draining).To(And(kubectl.HaveExitCode(1), kubectl.HaveEvicted(graceful)))
			Expect(cluster.Get(ctx, graceful)).To(BeTerminating())
		})

	Specify("The kubectl drain command evicts a new pod of the same name from another node when it retries an eviction.",
		Behavior("kubectl.drain-namesake", Observed, Kubectl, SimulatedNode, Since("1.37"), Source("kubernetes#138229")), func(ctx SpecContext) {
			command, managed := kubectl.New(ctx, cluster), managed(ctx)
			node, other := cluster.Create(ctx, fixtures.Node("node")), cluster.Create(ctx, fixtures.Node("other"))
			budget := allowsNone(ctx, cluster, cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", group, "replaced")))
			replaced := pod(ctx, node, "replaced", managed, WithLabel(group, "replaced"))
			workloads.SetPhase(ctx, cluster, replaced, "Running")

			draining := drain(ctx, command, node, "replaced")
			draining.AwaitRequest(ctx, HaveField("StatusCode", http.StatusTooManyRequests))
			command.Delay(http.MethodGet)
			draining.AwaitRequest(ctx, And(kubectl.ForObject(http.MethodGet, replaced), HaveField("StatusCode", 0)))
			cluster.Delete(ctx, replaced, Grace(0))
			namesake := pod(ctx, other, "replaced", managed, WithLabel(group, "replaced"))
			cluster.Delete(ctx, budget)
			command.Release()

			Expect(draining.Wait(ctx)).To(kubectl.HaveExitCode(0))
			Expect(cluster.TryGet(ctx, namesake)).To(BeGone())
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
