package admission

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Reviews of deletes by controllers", func() {
	cluster := UseCluster()

	Specify("A delete by the garbage collector must be reviewed, and a dependent whose delete is denied must remain "+
		"until a delete is allowed.",
		Behavior("admission.collector-is-reviewed", Core, AnyResource, Hook, GC, Source(webhooksPage), Promise(matching)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.Deny(dependent, denial)

			cluster.Delete(ctx, owner, Background)

			webhook.AwaitReview(ctx, dependent)
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))

			webhook.Allow(dependent)
			Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Deleted(dependent)))
		})

	Specify("The delete of an object in a terminating namespace must be reviewed, and a denial must block the "+
		"namespace with the condition NamespaceDeletionContentFailure.",
		Behavior("admission.namespace-content-is-reviewed", Core, Hook, KCM, Namespace, Source(webhooksPage), Promise(matching)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			content := cluster.In(namespace).Create(ctx, fixtures.ConfigMap("content"))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.Deny(content, denial)

			cluster.Delete(ctx, namespace)

			webhook.AwaitReview(ctx, content)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(
				HaveObserved(Matching(namespace, HaveCondition("NamespaceDeletionContentFailure"))))
			Expect(cluster.Get(ctx, content)).To(BeUnchangedSince(content))

			webhook.Allow(content)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.TryGet(ctx, content)).To(BeGone(), "the namespace is removed after its content")
		})

	Specify("Custom resources that are deleted with their CustomResourceDefinition are not reviewed.",
		Behavior("admission.crd-instances-are-not-reviewed", Observed, Hook, CRD,
			Source("apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go")), func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
			instance := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "instance"))
			single := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "single"))
			webhook := webhooks.Validating(ctx, cluster)

			cluster.Delete(ctx, single)
			cluster.Delete(ctx, definition)

			Eventually(ctx, cluster.History(instance)).WithTimeout(cluster.Session().AtLeast(definitions.Finalization)).Should(HaveObserved(Deleted(instance)))
			Expect(webhook.Reviews(instance)).To(BeEmpty())
			Expect(webhook.Reviews(single)).NotTo(BeEmpty(), "a direct delete of a custom resource is reviewed")
			Expect(webhook.Reviews(definition)).NotTo(BeEmpty(), "the delete of the CustomResourceDefinition is reviewed")
		})
})

var _ = Describe("Reviews of pod termination", func() {
	cluster := UseCluster()

	Specify("A delete of a running pod is reviewed once as the user, and then at least twice as the node with grace "+
		"period 0 and the uid as a precondition.",
		Behavior("admission.pod-termination-reviews", Observed, Hook, Node, Source("pkg/kubelet/status/status_manager.go")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "sleep 1; exit 0"}))
			webhook := webhooks.Validating(ctx, cluster)

			cluster.Delete(ctx, pod, Grace(20))
			workloads.AwaitTermination(ctx, cluster, pod)

			reviews := webhook.Reviews(pod)
			Expect(reviews[0]).To(And(HaveField("UserInfo.Username", users.WhoAmI(ctx, cluster)), withGrace(20)))
			confirmed := WithTransform(webhooks.DeleteOptionsOf, HaveField("Preconditions.UID", HaveValue(Equal(pod.GetUID()))))
			Expect(len(reviews[1:])).To(BeNumerically(">=", 2), "deletes by the node are reviewed at least twice")
			Expect(reviews[1:]).To(HaveEach(And(
				HaveField("UserInfo.Username", users.Node(nodes.Of(pod))), withGrace(0), confirmed)))
		})

	Specify("A pod whose removal by its kubelet was denied must be removed after the kubelet's next attempt is allowed.",
		Behavior("admission.pod-removal-denied", Core, Hook, Node, Source("concepts/workloads/pods/pod-lifecycle"),
			Promise("The design aim is for you to be able to request deletion ... but also be able to ensure that deletes eventually complete.")),
		func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.DenyTerminating(pod, denial) // before the delete, which the kubelet may complete at once
			cluster.Delete(ctx, pod)

			ofKubelet := HaveField("UserInfo.Username", users.Node(nodes.Of(pod)))
			Eventually(ctx, webhook.Reviews).WithArguments(pod).Should(ContainElement(ofKubelet))
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeTerminating(), workloads.HaveTerminatedContainers()))

			webhook.Allow(pod)
			workloads.AwaitTermination(ctx, cluster, pod)
		})
})
