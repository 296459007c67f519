package kubectl

import (
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// chosen is the label of what a selector is to choose.
const chosen = Domain + "/chosen"

var _ = Describe("what kubectl delete chooses", func() {
	cluster := UseCluster()

	create := func(ctx SpecContext, name string, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, fixtures.ConfigMap(name), options...)
	}

	Specify("-l, --all, -f FILE and --ignore-not-found delete what they name and nothing else",
		Behavior("kubectl.selection", Core, Kubectl, Source(reference), Promise(names)), func(ctx SpecContext) {
			one, other := create(ctx, "one", WithLabel(chosen, "yes")), create(ctx, "other", WithLabel(chosen, "yes"))
			named, inFile, bystander := create(ctx, "named"), create(ctx, "in-file"), create(ctx, "bystander")
			cluster.MustOwnAll(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/any", "pod"))
			budget := cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/any", "pod"))
			kubectl := cluster.Kubectl()

			selected := kubectl.Run(ctx, "delete", "configmaps", "-l", chosen+"=yes")
			all := kubectl.Run(ctx, "delete", "poddisruptionbudgets", "--all")
			fromFile := kubectl.Run(ctx, "delete", "-f", kubectl.Write("object.yaml", inFile))
			present := kubectl.Run(ctx, "delete", "configmap", cluster.FreeName("absent"), named.GetName(), "--ignore-not-found")

			Expect(selected).To(And(HaveExitCode(0), HaveDeleted(one, other)))
			Expect(all).To(And(HaveExitCode(0), HaveDeleted(budget)))
			Expect(fromFile).To(And(HaveExitCode(0), HaveDeleted(inFile)))
			Expect(present).To(HaveExitCode(0))
			Expect(cluster.List(ctx, bystander)).To(ConsistOf(BeUnchangedSince(bystander)))
		})

	Specify("--field-selector, -A, -f DIR -R, -k, standard input and --raw delete what they name",
		Behavior("kubectl.more-selection", Core, Kubectl, Source(reference), Promise(names)), func(ctx SpecContext) {
			byField, anywhere, raw := create(ctx, "by-field"), create(ctx, "anywhere", WithLabel(chosen, "yes")), create(ctx, "raw")
			inFolder, deeper := create(ctx, "in-folder"), create(ctx, "deeper")
			kustomized, piped, bystander := create(ctx, "kustomized"), create(ctx, "piped"), create(ctx, "bystander")
			kubectl := cluster.Kubectl()
			folder := filepath.Dir(kubectl.Write("folder/one.yaml", inFolder))
			kubectl.Write("folder/deeper/other.yaml", deeper)
			kubectl.Write("kustomized/object.yaml", kustomized)
			kustomization := filepath.Dir(kubectl.WriteText("kustomized/kustomization.yaml", "resources: [object.yaml]\n"))

			for deleted, arguments := range map[*Object][]string{
				byField:    {"configmaps", "--field-selector", "metadata.name=" + byField.GetName()},
				anywhere:   {"configmaps", "-A", "-l", cluster.Selector() + "," + chosen + "=yes"},
				kustomized: {"-k", kustomization},
				raw:        {"--raw", pathOf(raw)},
			} {
				Expect(kubectl.Run(ctx, append([]string{"delete"}, arguments...)...)).To(And(HaveExitCode(0), HaveDeleted(deleted)))
			}
			Expect(kubectl.Run(ctx, "delete", "-f", folder, "-R")).To(And(HaveExitCode(0), HaveDeleted(inFolder, deeper)))
			Expect(kubectl.Reading(Manifest(piped)).Run(ctx, "delete", "-f", "-")).To(And(HaveExitCode(0), HaveDeleted(piped)))

			Expect(cluster.List(ctx, bystander)).To(ConsistOf(BeUnchangedSince(bystander)))
		})

	Specify("an absent name is exit code 1; it is 0 with --ignore-not-found, -l, --all or --field-selector",
		Behavior("kubectl.not-found", Core, Kubectl,
			Source(reference),
			Promise("Treat \"resource not found\" as a successful delete. Defaults to \"true\" when --all is specified.")), func(ctx SpecContext) {
			cluster.MustOwnAll(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/any", "pod"))
			kubectl, absent := cluster.Kubectl(), cluster.FreeName("absent")

			Expect(kubectl.Run(ctx, "delete", "configmap", absent)).To(And(HaveExitCode(1), HaveField("Stderr", ContainSubstring("not found"))))
			for _, arguments := range [][]string{
				{"configmap", absent, "--ignore-not-found"},
				{"configmaps", "-l", chosen + "=nothing"},
				{"poddisruptionbudgets", "--all"},
				{"configmaps", "--field-selector", "metadata.name=" + absent},
			} {
				Expect(kubectl.Run(ctx, append([]string{"delete"}, arguments...)...)).To(HaveExitCode(0))
			}

			// What is selected may be gone by the time that it is to be deleted.
			fleeting := create(ctx, "fleeting", WithLabel(chosen, "yes"))
			kubectl.HoldBack(http.MethodDelete)
			deleting := kubectl.Start(ctx, "delete", "configmaps", "-l", chosen+"=yes")
			deleting.AwaitRequest(ctx, AskingFor(http.MethodDelete, fleeting))
			cluster.Delete(ctx, fleeting)
			kubectl.LetThrough()
			Expect(deleting.Wait(ctx)).To(HaveExitCode(0))
		})

	Specify("where one of several names is absent the others go, and the exit code is 1",
		Behavior("kubectl.continues", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			one, other := create(ctx, "one"), create(ctx, "other")

			absent := cluster.FreeName("absent")

			run := cluster.Kubectl().Run(ctx, "delete", "configmap", one.GetName(), absent, other.GetName())

			Expect(run).To(And(HaveExitCode(1), HaveField("Stderr", ContainSubstring(`"`+absent+`" not found`))))
			Expect(cluster.TryGet(ctx, one)).To(BeGone())
			Expect(cluster.TryGet(ctx, other)).To(BeGone())
		})

	Specify("-l, --all and -A send one DELETE an object and no deletecollection",
		Behavior("kubectl.one-by-one", Core, Kubectl,
			Source("reference/using-api/api-concepts"),
			Promise("When clients (including kubectl) act on a set of resources, the client makes a series of single-resource API "+
				"requests")), func(ctx SpecContext) {
			cluster.MustOwnAll(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/any", "pod"))
			kubectl := cluster.Kubectl()
			budget := func(name string) *Object {
				return cluster.Create(ctx, fixtures.PodDisruptionBudget(name, Domain+"/any", "pod"))
			}

			for _, choice := range [][]string{{"-l", cluster.Selector()}, {"--all"}, {"-A", "-l", cluster.Selector()}} {
				one, other := budget("one"), budget("other")
				run := kubectl.Run(ctx, append([]string{"delete", "poddisruptionbudgets"}, choice...)...)
				Expect(run).To(And(HaveExitCode(0), HaveDeleted(one, other)))
			}
		})

	Specify("replace --force deletes and creates: a new uid",
		Behavior("kubectl.replace-force", Core, Kubectl,
			Source("reference/kubectl/generated/kubectl_replace"),
			Promise("Force replace, delete and then re-create the resource")), func(ctx SpecContext) {
			object := create(ctx, "object")
			kubectl := cluster.Kubectl()

			run := kubectl.Run(ctx, "replace", "--force", "--validate=ignore", "-f", kubectl.Write("object.yaml", object))

			Expect(run).To(And(HaveExitCode(0), HaveDeleted(object)))
			Expect(cluster.Get(ctx, object)).NotTo(BeSameObjectAs(object))
		})
})
