package admission

import (
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

const (
	// webhooksPage is the page of the documentation on admission webhooks.
	webhooksPage = "reference/access-authn-authz/extensible-admission-controllers"
	// matching is the documentation's promise about every review.
	matching = "If an incoming request matches ... any of a webhook's `rules`, the request is sent to the webhook."
	// apiWebhooks is the API reference of webhook configurations.
	apiWebhooks = "reference/kubernetes-api/admissionregistration/validating-webhook-configuration-v1"
	// store is the source of undocumented behaviors.
	store = "k8s.io/apiserver/pkg/registry/generic/registry/store.go"
	// denial is the message of the denials in these specs.
	denial = "this one stays"
)

// withGrace matches the review of a delete with this grace period, in seconds.
func withGrace(seconds int) types.GomegaMatcher {
	return WithTransform(webhooks.DeleteOptionsOf, HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(seconds))))
}

// some matches one or more reviews that all match. An object may be reviewed more than once if it is written meanwhile, or if the server
// had an old copy.
func some(review types.GomegaMatcher) types.GomegaMatcher {
	return And(Not(BeEmpty()), HaveEach(review))
}

// of matches a review whose stored object matches.
func of(object types.GomegaMatcher) types.GomegaMatcher {
	return WithTransform(webhooks.OldObjectOf, object)
}

var _ = Describe("Reviews of deletes", func() {
	cluster := UseCluster()

	Specify("The review of a delete must contain the stored object as oldObject, no object, the delete options, the "+
		"user, and whether the request is a dry-run.",
		Behavior("admission.review-content", Core, AnyResource, Hook, Source(webhooksPage),
			Promise("oldObject is the existing object. It is null for CREATE and CONNECT operations")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			webhook := webhooks.Validating(ctx, cluster)

			cluster.Delete(ctx, object, DryRun, Orphan)
			dryRuns := webhook.Reviews(object)
			cluster.Delete(ctx, object, Background, IfUID(object.GetUID()))
			earnest := webhook.Reviews(object)[len(dryRuns):]

			for _, review := range slices.Concat(dryRuns, earnest) {
				Expect(review.Operation).To(Equal(admissionv1.Delete))
				Expect(webhooks.OldObjectOf(review)).To(HaveStateOf(object))
				Expect(review.Object.Raw).To(BeEmpty())
				Expect(review.UserInfo.Username).To(Equal(users.WhoAmI(ctx, cluster)))
			}
			options := func(matcher types.GomegaMatcher) types.GomegaMatcher {
				return WithTransform(webhooks.DeleteOptionsOf, matcher)
			}
			Expect(dryRuns).To(some(And(HaveField("DryRun", HaveValue(BeTrue())),
				options(HaveField("PropagationPolicy", HaveValue(Equal(metav1.DeletePropagationOrphan)))))))
			Expect(earnest).To(some(And(HaveField("DryRun", HaveValue(BeFalse())),
				options(HaveField("PropagationPolicy", HaveValue(Equal(metav1.DeletePropagationBackground)))),
				options(HaveField("Preconditions.UID", HaveValue(Equal(object.GetUID())))))))
		})

	Specify("A delete or a removal of a finalizer that a webhook denies is reviewed once.",
		Behavior("admission.denied-once", Observed, Hook, Source("k8s.io/apiserver/pkg/storage/etcd3/store.go")), func(ctx SpecContext) {
			free, held := cluster.Create(ctx, fixtures.ConfigMap("free")), cluster.Create(ctx, fixtures.ConfigMap("held"), Held)
			cluster.Delete(ctx, held)
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Delete, registrationv1.Update))
			webhook.Deny(free, denial)
			webhook.Deny(held, denial)
			// A server whose cache has no copy, or an old one, reads the object again.
			Eventually(ctx, cluster.History(free, held)).Should(HaveObserved(Added(free), Terminating(held)))

			Expect(cluster.TryDelete(ctx, free)).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.TryUpdate(ctx, held, WithoutFinalizers(Hold))).To(HaveStatusCode(http.StatusForbidden))

			Expect(webhook.Reviews(free)).To(HaveLen(1))
			Expect(webhook.Reviews(held)).To(HaveLen(1))
			webhook.Allow(held)
		})

	Specify("A delete that a webhook denies must return 403 with the message of the webhook and leave the object unchanged.",
		Behavior("admission.denial-changes-nothing", Core, Hook, Source(webhooksPage),
			Promise("When rejecting a request, the webhook can customize the http code and message returned to the user using the `status` field.")),
		func(ctx SpecContext) {
			objects := []*Object{
				cluster.Create(ctx, fixtures.ConfigMap("held"), Held),
			}
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.GhostBoundPod) {
				objects = append(objects, cluster.Create(ctx, kind("other")))
			}
			webhook := webhooks.Validating(ctx, cluster)

			for _, object := range objects {
				webhook.Deny(object, denial)
				response := cluster.TryDelete(ctx, object)

				Expect(response).To(HaveStatusCode(http.StatusForbidden))
				Expect(response.Message()).To(ContainSubstring(denial))
				Expect(cluster.Get(ctx, object)).To(And(BeUnchangedSince(object), Not(BeTerminating())))
			}
		})

	Specify("A deletecollection must be reviewed as a delete of each object.",
		Behavior("admission.collection-is-reviewed", Core, AnyResource, Hook, Source(webhooksPage), Promise(matching)), func(ctx SpecContext) {
			var members []*Object
			for _, name := range []string{"one", "two", "three"} {
				members = append(members, cluster.Create(ctx, fixtures.ConfigMap(name), WithLabel(Domain+"/swept", "yes")))
			}
			spared := cluster.Create(ctx, fixtures.ConfigMap("spared"))
			webhook := webhooks.Validating(ctx, cluster)

			cluster.DeleteCollection(ctx, spared, WithLabelSelector(Domain+"/swept=yes"))

			for _, member := range members {
				Expect(webhook.Reviews(member)).To(some(of(BeUnchangedSince(member))))
			}
			Expect(webhook.Reviews(spared)).To(BeEmpty())
		})

	Specify("A pod whose immediate removal is denied after its deletion has begun remains, terminating with grace period 0, and a "+
		"repeated delete removes it.",
		Behavior("admission.denied-in-between", Observed, Hook, Source(store)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.UnscheduledPod("pod"))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.DenyTerminating(pod, denial)

			Expect(cluster.TryDelete(ctx, pod)).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(0)))

			webhook.Hold(pod) // so that the pod garbage collector does not delete it first
			cluster.Delete(ctx, pod)
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
		})

	Specify("A delete on behalf of another user must be reviewed as a delete by that user.",
		Behavior("admission.impersonated-delete", Core, AnyResource, Hook, Admin, Source("reference/access-authn-authz/user-impersonation"),
			Promise("Request user info is replaced with impersonation values.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			webhook := webhooks.Validating(ctx, cluster)

			may := users.May("configmaps", "delete")
			users.As(ctx, cluster, "deleter", may).Delete(ctx, object)

			Expect(webhook.Reviews(object)).To(some(HaveField("UserInfo.Username", users.Name(may))))
		})

	// The API server may also review a cached pod, and once more if that is out of date.
	Specify("A delete of an unscheduled pod is reviewed at least twice with grace period 0, before the grace period is "+
		"written and before the pod is removed.",
		Behavior("admission.unscheduled-pod-reviews", Observed, Hook, Source(store)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.UnscheduledPod("pod"))
			webhook := webhooks.Validating(ctx, cluster)
			var stored *Object
			webhook.DuringReview(pod, func() { stored = cluster.Get(ctx, pod) })

			cluster.Delete(ctx, pod)

			// The stored object shows when the first review was sent, because a review may contain a cached object.
			Expect(stored).To(BeUnchangedSince(pod))
			reviews := webhook.Reviews(pod)
			Expect(reviews).To(HaveEach(withGrace(0)))
			Expect(reviews[0]).To(of(BeUnchangedSince(pod)))
			Expect(reviews[len(reviews)-1]).To(of(And(BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(0))))
		})

	Specify("A repeated delete of a pod in its grace period is not reviewed, and a repeated delete of an object with a finalizer is.",
		Behavior("admission.repeated-delete", Observed, Hook, Source(store)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), Held)
			webhook := webhooks.Validating(ctx, cluster)

			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, held)
			ofPod, ofHeld := webhook.Reviews(pod), webhook.Reviews(held)
			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, held)

			Expect(webhook.Reviews(pod)).To(Equal(ofPod))
			Expect(len(webhook.Reviews(held))).To(BeNumerically(">", len(ofHeld)))
		})

	Specify("An object that changes during the review of its delete is reviewed again in the changed state.",
		Behavior("admission.changed-during-review", Observed, AnyResource, Hook,
			Source("k8s.io/apiserver/pkg/registry/generic/registry: TestRetryDeleteValidation")), func(ctx SpecContext) {
			objects := []*Object{
				cluster.Create(ctx, fixtures.ConfigMap("free")),
				cluster.Create(ctx, fixtures.ConfigMap("held"), Held),
			}
			webhook := webhooks.Validating(ctx, cluster)

			for _, object := range objects {
				webhook.DuringReview(object, func() { cluster.Update(ctx, object, WithLabel(Domain+"/changed", "yes")) })
				cluster.Delete(ctx, object)

				Expect(webhook.Reviews(object)).To(HaveExactElements(
					of(BeUnchangedSince(object)),
					of(And(BeSameObjectAs(object), HaveField("GetLabels()", HaveKey(Domain+"/changed")))),
				))
			}
		})
})

var _ = Describe("Reviews of finalizer removals", func() {
	cluster := UseCluster()

	Specify("The removal of the last finalizer of a terminating object is not reviewed as a delete.",
		Behavior("admission.finalizer-removal-is-not-a-delete", Observed, AnyResource, Hook, Source(store)), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
			webhook := webhooks.Validating(ctx, cluster)

			cluster.Delete(ctx, object)
			cluster.Release(ctx, object)

			Expect(cluster.TryGet(ctx, object)).To(BeGone())
			Expect(webhook.Reviews(object)).To(ConsistOf(of(BeUnchangedSince(object))))
		})

	Specify("The removal of the last finalizer must be reviewed as an update, and a denial must keep the object.",
		Behavior("admission.finalizer-removal-is-an-update", Core, AnyResource, Hook, Source(webhooksPage), Promise(matching)), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
			cluster.Delete(ctx, object)
			object = cluster.Get(ctx, object)
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update, registrationv1.Delete))
			webhook.Deny(object, denial)

			Expect(cluster.TryUpdate(ctx, object, WithoutFinalizers(Hold))).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))

			webhook.Allow(object)
			cluster.Release(ctx, object)
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
			Expect(webhook.Reviews(object)).To(some(HaveField("Operation", admissionv1.Update)))
		})
})

var _ = Describe("Reviews of evictions", func() {
	cluster := UseCluster()

	Specify("An eviction is reviewed as a create of pods/eviction and not as a delete of the pod.",
		Behavior("admission.eviction-review", Observed, Hook, Source("kubernetes#124018")), func(ctx SpecContext) {
			workloads.MustServeBudgets(ctx, cluster)
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := workloads.SetPhase(ctx, cluster, cluster.Create(ctx, fixtures.GhostBoundPod("running")), "Running")
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Create, registrationv1.Delete), webhooks.OnResources("pods", "pods/eviction"))

			for _, pod := range []*Object{pending, running} {
				Expect(cluster.TryEvict(ctx, pod).Err).NotTo(HaveOccurred())

				Expect(cluster.Get(ctx, pod)).To(BeTerminating())
				Expect(webhook.Reviews(pod)).To(ConsistOf(And(
					HaveField("Operation", admissionv1.Create), HaveField("SubResource", "eviction"), HaveField("Kind.Kind", "Eviction"))))
			}
		})
})
