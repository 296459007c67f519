package kubectl

import (
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/kubectl"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

// chosen is the label in selectors.
const chosen = Domain + "/chosen"

// rareKind returns a kind of which the namespace of a run contains no objects, so that a spec can delete all of them.
func rareKind(ctx SpecContext, cluster *Cluster) func(name string) *Object {
	GinkgoHelper()
	budget := func(name string) *Object { return fixtures.PodDisruptionBudget(name, Domain+"/any", "pod") }
	return cluster.FirstServed(ctx, budget, fixtures.Secret)
}

var _ = Describe("Selection by kubectl delete", func() {
	cluster := UseCluster()

	create := func(ctx SpecContext, name string, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, fixtures.ConfigMap(name), options...)
	}

	Specify("The kubectl delete command must delete exactly the objects selected with -l, --all, -f, or by name with --ignore-not-found.",
		Behavior("kubectl.selection", Core, Kubectl, Source(reference), Promise(names)), func(ctx SpecContext) {
			one, other := create(ctx, "one", WithLabel(chosen, "yes")), create(ctx, "other", WithLabel(chosen, "yes"))
			named, inFile, bystander := create(ctx, "named"), create(ctx, "in-file"), create(ctx, "bystander")
			rare := rareKind(ctx, cluster)
			kubectl.MustOwnAll(ctx, cluster, rare("any"))
			every := cluster.Create(ctx, rare("every"))
			command := kubectl.New(ctx, cluster)

			selected := command.Run(ctx, "delete", "configmaps", "-l", chosen+"=yes")
			all := command.Run(ctx, "delete", every.GetKind(), "--all")
			fromFile := command.Run(ctx, "delete", "-f", command.Write(ctx, "object.yaml", inFile))
			present := command.Run(ctx, "delete", "configmap", cluster.FreeName("absent"), named.GetName(), "--ignore-not-found")

			Expect(selected).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(one, other)))
			Expect(all).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(every)))
			Expect(fromFile).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(inFile)))
			Expect(present).To(kubectl.HaveExitCode(0))
			Expect(cluster.List(ctx, bystander)).To(ConsistOf(BeUnchangedSince(bystander)))
		})

	Specify("The kubectl delete command must delete exactly the objects selected with --field-selector, -A, -f and -R, "+
		"-k, standard input, or --raw.",
		Behavior("kubectl.selection-by-field-or-file", Core, Kubectl, Source(reference), Promise(names)), func(ctx SpecContext) {
			byField, anywhere, raw := create(ctx, "by-field"), create(ctx, "anywhere", WithLabel(chosen, "yes")), create(ctx, "raw")
			inFolder, deeper := create(ctx, "in-folder"), create(ctx, "deeper")
			kustomized, piped, bystander := create(ctx, "kustomized"), create(ctx, "piped"), create(ctx, "bystander")
			command := kubectl.New(ctx, cluster)
			folder := filepath.Dir(command.Write(ctx, "folder/one.yaml", inFolder))
			command.Write(ctx, "folder/deeper/other.yaml", deeper)
			command.Write(ctx, "kustomized/object.yaml", kustomized)
			kustomization := filepath.Dir(command.WriteText(ctx, "kustomized/kustomization.yaml", "resources: [object.yaml]\n"))

			for deleted, arguments := range map[*Object][]string{
				byField:    {"configmaps", "--field-selector", "metadata.name=" + byField.GetName()},
				anywhere:   {"configmaps", "-A", "-l", kubectl.Selector(cluster) + "," + chosen + "=yes"},
				kustomized: {"-k", kustomization},
				raw:        {"--raw", pathOf(raw)},
			} {
				Expect(command.Run(ctx, append([]string{"delete"}, arguments...)...)).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(deleted)))
			}
			Expect(command.Run(ctx, "delete", "-f", folder, "-R")).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(inFolder, deeper)))
			Expect(command.WithInput(kubectl.Manifest(piped)).Run(ctx, "delete", "-f", "-")).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(piped)))

			Expect(cluster.List(ctx, bystander)).To(ConsistOf(BeUnchangedSince(bystander)))
		})

	Specify("The kubectl delete command must exit with 1 for an absent name, and with 0 for an absent object with "+
		"--ignore-not-found, -l, --all or --field-selector.",
		Behavior("kubectl.not-found", Core, Kubectl,
			Source(reference),
			Promise("Treat \"resource not found\" as a successful delete. Defaults to \"true\" when --all is specified.")), func(ctx SpecContext) {
			rare := rareKind(ctx, cluster)("any")
			kubectl.MustOwnAll(ctx, cluster, rare)
			command, absent := kubectl.New(ctx, cluster), cluster.FreeName("absent")

			Expect(command.Run(ctx, "delete", "configmap", absent)).To(kubectl.HaveExitCode(1))
			for _, arguments := range [][]string{
				{"configmap", absent, "--ignore-not-found"},
				{"configmaps", "-l", chosen + "=nothing"},
				{rare.GetKind(), "--all"},
				{"configmaps", "--field-selector", "metadata.name=" + absent},
			} {
				Expect(command.Run(ctx, append([]string{"delete"}, arguments...)...)).To(kubectl.HaveExitCode(0))
			}

			// A selected object may be gone when kubectl deletes it.
			fleeting := create(ctx, "fleeting", WithLabel(chosen, "yes"))
			command.Delay(http.MethodDelete)
			deleting := command.Start(ctx, "delete", "configmaps", "-l", chosen+"=yes")
			deleting.AwaitRequest(ctx, kubectl.ForObject(http.MethodDelete, fleeting))
			cluster.Delete(ctx, fleeting)
			command.Release()
			Expect(deleting.Wait(ctx)).To(kubectl.HaveExitCode(0))
		})

	Specify("The kubectl delete command deletes the other named objects when one is absent, and exits with 1.",
		Behavior("kubectl.partial-failure", Observed, Kubectl, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			one, other := create(ctx, "one"), create(ctx, "other")

			absent := cluster.FreeName("absent")

			run := kubectl.New(ctx, cluster).Run(ctx, "delete", "configmap", one.GetName(), absent, other.GetName())

			Expect(run).To(And(kubectl.HaveExitCode(1), HaveField("Stderr", ContainSubstring(`"`+absent+`" not found`))))
			Expect(cluster.TryGet(ctx, one)).To(BeGone())
			Expect(cluster.TryGet(ctx, other)).To(BeGone())
		})

	Specify("The kubectl delete command deletes the other named objects when the delete of one is refused, and exits with 1.",
		Behavior("kubectl.continues-after-refusal", Observed, Kubectl, Hook, Source("k8s.io/kubectl/pkg/cmd/delete/delete.go")), func(ctx SpecContext) {
			one, refused, other := create(ctx, "one"), create(ctx, "refused"), create(ctx, "other")
			webhooks.Validating(ctx, cluster).Deny(refused, "this one stays")

			run := kubectl.New(ctx, cluster).Run(ctx, "delete", "configmap", one.GetName(), refused.GetName(), other.GetName())

			Expect(run).To(And(kubectl.HaveExitCode(1), HaveField("Stderr", ContainSubstring("this one stays"))))
			Expect(cluster.TryGet(ctx, one)).To(BeGone())
			Expect(cluster.Get(ctx, refused)).To(BeUnchangedSince(refused))
			Expect(cluster.TryGet(ctx, other)).To(BeGone())
		})

	Specify("The kubectl delete command must delete every object of a List, of a file with several documents, and named as TYPE/NAME or "+
		"by several types.",
		Behavior("kubectl.several-objects", Core, Kubectl, Source(reference), Promise(names)), func(ctx SpecContext) {
			rare := rareKind(ctx, cluster)
			other := func(name string, options ...ObjectOption) *Object { return cluster.Create(ctx, rare(name), options...) }
			listed, alsoListed := create(ctx, "listed"), other("listed")
			inFile, alsoInFile := create(ctx, "in-file"), other("in-file")
			named, alsoNamed := create(ctx, "named"), other("named")
			byType, byOtherType := create(ctx, "by-type", WithLabel(chosen, "yes")), other("by-type", WithLabel(chosen, "yes"))
			bystander := create(ctx, "bystander")
			command := kubectl.New(ctx, cluster)
			list := command.Write(ctx, "list.yaml", &Object{Object: map[string]any{
				"apiVersion": "v1", "kind": "List", "items": []any{listed.Object, alsoListed.Object},
			}})
			documents := command.WriteText(ctx, "documents.yaml", kubectl.Manifest(inFile)+"---\n"+kubectl.Manifest(alsoInFile))

			for _, deletion := range []struct {
				arguments []string
				deleted   []*Object
			}{
				{[]string{"-f", list}, []*Object{listed, alsoListed}},
				{[]string{"-f", documents}, []*Object{inFile, alsoInFile}},
				{[]string{"configmap/" + named.GetName(), alsoNamed.GetKind() + "/" + alsoNamed.GetName()}, []*Object{named, alsoNamed}},
				{[]string{"configmaps," + byOtherType.GetKind(), "-l", chosen + "=yes"}, []*Object{byType, byOtherType}},
			} {
				run := command.Run(ctx, append([]string{"delete"}, deletion.arguments...)...)
				Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(deletion.deleted...)))
			}
			Expect(cluster.List(ctx, bystander)).To(ConsistOf(BeUnchangedSince(bystander)))
		})

	Specify("The kubectl delete command with -l, --all or -A must send one DELETE request per object and no deletecollection.",
		Behavior("kubectl.no-deletecollection", Core, Kubectl,
			Source("reference/using-api/api-concepts"),
			Promise("When clients (including kubectl) act on a set of resources, the client makes a series of single-resource API "+
				"requests")), func(ctx SpecContext) {
			rare := rareKind(ctx, cluster)
			kubectl.MustOwnAll(ctx, cluster, rare("any"))
			command := kubectl.New(ctx, cluster)

			for _, choice := range [][]string{{"-l", kubectl.Selector(cluster)}, {"--all"}, {"-A", "-l", kubectl.Selector(cluster)}} {
				one, other := cluster.Create(ctx, rare("one")), cluster.Create(ctx, rare("other"))
				run := command.Run(ctx, append([]string{"delete", one.GetKind()}, choice...)...)
				Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(one, other)))
			}
		})

	Specify("The kubectl apply command with --prune must delete exactly the selected objects that were applied earlier and are not applied now.",
		Behavior("kubectl.apply-prune", Extended, Kubectl,
			Source("tasks/manage-kubernetes-objects/declarative-config"),
			Promise("`--prune`: Delete previously applied objects that are not in the set passed to the current invocation.")), func(ctx SpecContext) {
			kept, pruned := create(ctx, "kept", WithLabel(chosen, "yes")), create(ctx, "pruned", WithLabel(chosen, "yes"))
			unapplied, unselected := create(ctx, "unapplied", WithLabel(chosen, "yes")), create(ctx, "unselected")
			command := kubectl.New(ctx, cluster)
			set := command.Write(ctx, "set/kept.yaml", kept)
			command.Write(ctx, "set/pruned.yaml", pruned)
			command.Write(ctx, "set/unselected.yaml", unselected)
			apply := []string{"apply", "--validate=ignore", "-f"}

			Expect(command.Run(ctx, append(apply, filepath.Dir(set))...)).To(kubectl.HaveExitCode(0))
			run := command.Run(ctx, append(apply, set, "--prune", "-l", kubectl.Selector(cluster)+","+chosen+"=yes", "--prune-allowlist=core/v1/ConfigMap")...)

			Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(pruned)))
			Expect(cluster.Get(ctx, unapplied)).To(BeUnchangedSince(unapplied))
		})

	Specify("The kubectl replace command with --force must delete the object and create an object with a new uid.",
		Behavior("kubectl.replace-force", Core, Kubectl,
			Source("reference/kubectl/generated/kubectl_replace"),
			Promise("Force replace, delete and then re-create the resource")), func(ctx SpecContext) {
			object := create(ctx, "object")
			command := kubectl.New(ctx, cluster)

			run := command.Run(ctx, "replace", "--force", "--validate=ignore", "-f", command.Write(ctx, "object.yaml", object))

			Expect(run).To(And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object)))
			Expect(cluster.Get(ctx, object)).NotTo(BeSameObjectAs(object))
		})
})
