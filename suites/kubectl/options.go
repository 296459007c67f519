package kubectl

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/kubectl"
)

// reference is the page of the documentation on kubectl delete.
const reference = "reference/kubectl/generated/kubectl_delete"

// names is the sentence of the reference on what kubectl delete deletes.
const names = "Delete resources by file names, stdin, resources and names, or by resources and label selector."

var _ = Describe("Flags of kubectl delete", func() {
	cluster := UseCluster()

	// cascades expects each flag to make kubectl request a policy.
	cascades := func(ctx SpecContext, policies map[string]metav1.DeletionPropagation) {
		GinkgoHelper()
		object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
		for flag, policy := range policies {
			run := kubectl.New(ctx, cluster).Run(ctx, "delete", "configmap", object.GetName(), "--wait=false", flag)
			Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object)))
			Expect(run.DeleteOptions()).To(ConsistOf(HaveField("PropagationPolicy", HaveValue(Equal(policy)))), flag)
		}
	}

	Specify("The --cascade flag of kubectl delete must send the propagation policy background, orphan or foreground, "+
		"with background as the default.",
		Behavior("kubectl.cascade", Core, Kubectl,
			Source(reference),
			Promise("Selects the deletion cascading strategy for the dependents (e.g. Pods created by a ReplicationController). "+
				"Defaults to background.")), func(ctx SpecContext) {
			cascades(ctx, map[string]metav1.DeletionPropagation{
				"--cascade=background": metav1.DeletePropagationBackground,
				"--cascade=orphan":     metav1.DeletePropagationOrphan,
				"--cascade=foreground": metav1.DeletePropagationForeground,
				"--now=false":          metav1.DeletePropagationBackground, // the default
			})
		})

	Specify("The deprecated flag --cascade=true of kubectl delete sends the propagation policy background, and "+
		"--cascade=false sends orphan.",
		Behavior("kubectl.cascade-deprecated", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/delete/delete_flags.go")), func(ctx SpecContext) {
			cascades(ctx, map[string]metav1.DeletionPropagation{
				"--cascade=true":  metav1.DeletePropagationBackground,
				"--cascade=false": metav1.DeletePropagationOrphan,
			})
		})

	Specify("The kubectl delete command sends the propagation policy background for --cascade without a value, and rejects unknown values "+
		"before any request.",
		Behavior("kubectl.cascade-values", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/util/helpers.go")), func(ctx SpecContext) {
			cascades(ctx, map[string]metav1.DeletionPropagation{"--cascade": metav1.DeletePropagationBackground})

			object := cluster.Create(ctx, fixtures.ConfigMap("kept"))
			for _, value := range []string{"sideways", "Foreground", ""} {
				Expect(kubectl.New(ctx, cluster).Run(ctx, "delete", "configmap", object.GetName(), "--cascade="+value)).To(beRefused(), "--cascade=%s", value)
			}
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("The kubectl delete command must send the grace period 0 for --force without --grace-period.",
		Behavior("kubectl.force", Core, Kubectl, Source(reference),
			Promise("If true, immediately remove resources from API and bypass graceful deletion.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(60))

			run := kubectl.New(ctx, cluster).Run(ctx, "delete", "pod", pod.GetName(), "--force")

			Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(pod)))
			Expect(run.DeleteOptions()).To(ConsistOf(HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(0)))))
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
		})

	Specify("The output of kubectl delete names each object and whether the delete is forced or a dry-run, and with -o name it is kind/name.",
		Behavior("kubectl.output", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
			title := `configmap "` + object.GetName() + `" `
			command := kubectl.New(ctx, cluster)

			for flag, output := range map[string]types.GomegaMatcher{
				"--now=false":      And(HavePrefix(title+"deleted"), Not(ContainSubstring("dry run"))),
				"--force":          HavePrefix(title + "force deleted"),
				"--dry-run=server": And(HavePrefix(title+"deleted"), HaveSuffix("(server dry run)\n")),
				"--dry-run=client": And(HavePrefix(title+"deleted"), HaveSuffix("(dry run)\n")),
				"--output=name":    Equal("configmap/" + object.GetName() + "\n"),
			} {
				run := command.Run(ctx, "delete", "configmap", object.GetName(), "--wait=false", flag)
				Expect(run).To(And(kubectl.HaveExitCode(0), HaveField("Stdout", output)), flag)
			}
		})

	Specify("The kubectl delete command must send the value of --grace-period and 1 for --now, and must send 1 instead "+
		"of 0 unless --force is set.",
		Behavior("kubectl.grace", Core, Kubectl,
			Source(reference),
			Promise("Period of time in seconds given to the resource to terminate gracefully. ... Can only be set to 0 when --force "+
				"is true (force deletion).")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(60))
			command := kubectl.New(ctx, cluster)

			for flag, grace := range map[string]types.GomegaMatcher{
				"--now=false": BeNil(), "--grace-period=45": HaveValue(BeEquivalentTo(45)), "--now": HaveValue(BeEquivalentTo(1)),
			} {
				run := command.Run(ctx, "delete", "pod", pod.GetName(), "--wait=false", flag)
				Expect(run).To(kubectl.HaveExitCode(0))
				Expect(run.DeleteOptions()).To(ConsistOf(HaveField("GracePeriodSeconds", grace)), flag)
			}

			waiting := command.Start(ctx, "delete", "pod", pod.GetName(), "--grace-period=0")
			waiting.AwaitRequest(ctx, kubectl.Watching())
			forced := command.Run(ctx, "delete", "pod", pod.GetName(), "--grace-period=0", "--force")
			waited := waiting.Wait(ctx)

			Expect(waited).To(kubectl.HaveExitCode(0))
			Expect(waited.DeleteOptions()).To(ConsistOf(HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(1)))))
			Expect(forced).To(kubectl.HaveExitCode(0))
			Expect(forced.DeleteOptions()).To(ConsistOf(HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(0)))))
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
		})

	Specify("The kubectl delete command must change nothing with --dry-run=server or --dry-run=client.",
		Behavior("kubectl.dry-run", Core, Kubectl,
			Source(reference),
			Promise("If client strategy, only print the object that would be sent, without sending it. If server strategy, submit "+
				"server-side request without persisting the resource.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			command := kubectl.New(ctx, cluster)

			onServer := command.Run(ctx, "delete", "configmap", object.GetName(), "--dry-run=server")
			onClient := command.Run(ctx, "delete", "configmap", object.GetName(), "--dry-run=client")

			Expect(onServer).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object)))
			Expect(onServer.DeleteOptions()).To(ConsistOf(HaveField("DryRun", ConsistOf(metav1.DryRunAll))))
			Expect(onClient).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted()))
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("The kubectl delete command prints a warning for a cluster-scoped object when a namespace is given.",
		Behavior("kubectl.cluster-scoped-warning", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			object, command := cluster.Create(ctx, fixtures.ConfigMap("object")), kubectl.New(ctx, cluster)
			for resource, name := range map[string]string{"configmap": object.GetName(), "namespace": cluster.Namespace()} {
				run := command.Run(ctx, "delete", resource, name, "--namespace", cluster.Namespace(), "--dry-run=client")
				warned := ContainSubstring("cluster-scoped")
				if resource == "configmap" {
					warned = Not(warned)
				}
				Expect(run).To(And(kubectl.HaveExitCode(0), HaveField("Stderr", warned)))
			}
		})

	Specify("The kubectl delete command rejects --now with --grace-period, and --force with a positive grace period, before any request.",
		Behavior("kubectl.conflicting-flags", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			command := kubectl.New(ctx, cluster)

			for _, flags := range [][]string{{"--now", "--grace-period=5"}, {"--force", "--grace-period=5"}, {"--force", "--now"}} {
				run := command.Run(ctx, append([]string{"delete", "configmap", object.GetName(), "--wait=false"}, flags...)...)
				Expect(run).To(beRefused())
			}
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("The kubectl delete command rejects --all with a selector, --interactive with --raw, and --raw with "+
		"--recursive or --output, before any request.",
		Behavior("kubectl.conflicting-selection-flags", Observed, Kubectl, Since("1.30"),
			Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			command := kubectl.New(ctx, cluster).WithInput("y\n")

			for _, arguments := range [][]string{
				{"configmaps", "--all", "--selector", kubectl.Selector(cluster)},
				{"configmaps", "--all", "--field-selector", "metadata.name=" + object.GetName()},
				{"--interactive", "--raw", pathOf(object)},
				{"--raw", pathOf(object), "--recursive"},
				{"--raw", pathOf(object), "--output", "name"},
			} {
				Expect(command.Run(ctx, append([]string{"delete"}, arguments...)...)).To(beRefused())
			}
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("The kubectl delete command with --raw must send the DELETE below the path of the server in the kubeconfig.",
		Behavior("kubectl.raw-below-a-path", Core, Kubectl, Since("1.34"),
			Source(reference), Promise("Raw URI to DELETE to the server. Uses the transport specified by the kubeconfig file.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))

			run := kubectl.New(ctx, cluster).Below("/clusters/one").Run(ctx, "delete", "--raw", pathOf(object))

			Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object)))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("The kubectl delete command with --interactive must ask for confirmation and delete the object only if the user confirms.",
		Behavior("kubectl.interactive", Core, Kubectl, Since("1.30"),
			Source(reference), Promise("If true, delete resource only when user confirms.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			command := kubectl.New(ctx, cluster)

			for _, answer := range []string{"n\n", "later\n", "\n", ""} {
				run := command.WithInput(answer).Run(ctx, "delete", "configmap", object.GetName(), "--interactive")
				Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(), prompting(object)), "answered %q", answer)
			}
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))

			run := command.WithInput("y\n").Run(ctx, "delete", "configmap", object.GetName(), "--interactive")
			Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object), prompting(object)))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})
})

// beRefused matches a kubectl that failed without sending a request.
func beRefused() types.GomegaMatcher {
	return And(kubectl.HaveExitCode(1), HaveField("Requests", BeEmpty()), HaveField("Stderr", HavePrefix("error: ")))
}

// prompting matches a kubectl that has prompted for confirmation to delete an object.
func prompting(object *Object) types.GomegaMatcher {
	return Or(HaveField("Stdout", ContainSubstring(object.GetName())), HaveField("Stderr", ContainSubstring(object.GetName())))
}

// pathOf is the path of a ConfigMap.
func pathOf(object *Object) string {
	return "/api/v1/namespaces/" + object.GetNamespace() + "/configmaps/" + object.GetName()
}

// reading matches a get, list or watch request.
var reading = HaveField("Method", http.MethodGet)
