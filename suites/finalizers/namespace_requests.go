package finalizers

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

const (
	// namespaceStorage is the source of the responses to deletes of namespaces, which differ from those of other kinds.
	namespaceStorage = "pkg/registry/core/namespace/storage/storage.go"
	// namespaceLifecycle is the documentation of the admission plugin NamespaceLifecycle.
	namespaceLifecycle = "reference/access-authn-authz/admission-controllers"
)

// Sentences of the documentation of NamespaceLifecycle.
const (
	nothingNew = "This admission controller enforces that a `Namespace` that is undergoing termination cannot have new objects " +
		"created in it"
	allRemoved = "A `Namespace` deletion kicks off a sequence of operations that remove all objects (pods, services, etc.) in " +
		"that namespace."
	noneWithout = "ensures that requests in a non-existent `Namespace` are rejected."
	systemStays = "This admission controller also prevents deletion of three system reserved namespaces `default`, " +
		"`kube-system`, `kube-public`."
)

var _ = Describe("Namespace delete requests", func() {
	cluster := UseCluster()

	Specify("A deleted namespace must have a deletionTimestamp and the phase Terminating immediately, and a repeated "+
		"delete must not change the deletionTimestamp.",
		Behavior("finalizers.namespace.terminating-phase", Core, Namespace, Source(namespaces),
			Promise("`Terminating` the namespace is being deleted, and cannot be used for new objects")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"), Held)

			Expect(Require(cluster.TryDelete(ctx, namespace))).To(BeAccepted())

			terminating := cluster.Get(ctx, namespace)
			Expect(terminating).To(And(BeSameObjectAs(namespace), terminatingNamespace()))
			cluster.Tick(ctx)
			Expect(Require(cluster.TryDelete(ctx, namespace))).To(BeAccepted())
			Expect(cluster.Get(ctx, namespace)).To(And(
				BeSameObjectAs(namespace), terminatingNamespace(), HaveDeletionTimestamp(terminating.GetDeletionTimestamp())))
		})

	Specify("A namespace delete, also as a dry-run, returns 200 with the Namespace, sets deletionTimestamp and phase "+
		"Terminating in one write, and writes nothing when repeated.",
		Behavior("finalizers.namespace.response", Observed, Namespace, Source(namespaceStorage)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"), Held)

			Expect(Require(cluster.TryDelete(ctx, namespace, DryRun))).To(And(BeSameObjectAs(namespace), terminatingNamespace()))
			response := Require(cluster.TryDelete(ctx, namespace))

			Expect(response).To(And(HaveStatusCode(http.StatusOK), BeSameObjectAs(namespace), terminatingNamespace()))
			Expect(cluster.Get(ctx, namespace)).To(BeUnchangedSince(response.Object))
			cluster.Tick(ctx)
			Expect(Require(cluster.TryDelete(ctx, namespace))).To(And(HaveStatusCode(http.StatusOK), BeSameObjectAs(namespace)))
			Expect(cluster.Get(ctx, namespace)).To(BeUnchangedSince(response.Object))
			Eventually(ctx, cluster.History(namespace)).Should(HaveObserved(Matching(namespace, terminatingNamespace())))
			Expect(cluster.History(namespace)).NotTo(
				HaveObserved(Matching(namespace, And(BeTerminating(), HavePhase(corev1.NamespaceActive)))))
		})

	Specify("A namespace delete with another uid or an outdated resourceVersion must be refused with 409 and change "+
		"nothing, and must succeed with the current ones.",
		Behavior("finalizers.namespace.preconditions", Core, Namespace, Source(deleteOptions), Promise(mustBeFulfilled.quote)), func(ctx SpecContext) {
			old := cluster.Create(ctx, fixtures.Namespace("ns"), Held)
			namespace := cluster.Update(ctx, old, WithLabel(Domain+"/written", "again"))
			refused := func(when string) {
				GinkgoHelper()
				for _, condition := range []DeleteOption{IfUID("somebody-else"), IfVersion(old.GetResourceVersion())} {
					Expect(cluster.TryDelete(ctx, namespace, condition)).To(HaveStatusCode(http.StatusConflict), when)
					Expect(cluster.TryDelete(ctx, namespace, condition, Grace(0))).To(HaveStatusCode(http.StatusConflict), when)
				}
			}

			refused("while it lives")
			Expect(cluster.Get(ctx, namespace)).To(BeUnchangedSince(namespace))
			cluster.Delete(ctx, namespace, IfUID(namespace.GetUID()), IfVersion(namespace.GetResourceVersion()))
			refused("while it is terminating")
			Expect(cluster.Get(ctx, namespace)).To(And(BeSameObjectAs(namespace), terminatingNamespace()))
		})

	Specify("A dry-run delete of a namespace must be accepted under every propagation policy and change nothing, so "+
		"that content can still be created.",
		Behavior("finalizers.namespace.dry-run", Core, Namespace, Source(apiConcepts), Promise(notPersisted.quote)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))

			for _, policy := range []DeleteOption{Background, Foreground, Orphan, Grace(0)} {
				Expect(Require(cluster.TryDelete(ctx, namespace, DryRun, policy))).To(BeAccepted())
				Expect(cluster.Get(ctx, namespace)).To(BeUnchangedSince(namespace))
			}

			cluster.In(namespace).Create(ctx, fixtures.ConfigMap("content"))
		})

	Specify("A namespace delete with grace period 0, even when repeated, must not remove a namespace with content.",
		Behavior("finalizers.namespace.grace-zero", Core, Namespace, Source(namespaceReference), Promise(heldBySpec)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			content := cluster.In(namespace).Create(ctx, fixtures.ConfigMap("content"), Held)

			for range 2 {
				cluster.Delete(ctx, namespace, Grace(0))
				Expect(cluster.Get(ctx, namespace)).To(And(BeSameObjectAs(namespace), terminatingNamespace()))
			}
			Expect(specFinalizers(cluster.Get(ctx, namespace))).To(ConsistOf(string(corev1.FinalizerKubernetes)))
			Expect(cluster.Get(ctx, content)).To(HaveFinalizers(Hold))
		})

	Specify("A status update that sets a namespace phase that contradicts the deletionTimestamp is refused with 422.",
		Behavior("finalizers.namespace.phase-matches-deletion-timestamp", Observed, Namespace, Source("pkg/apis/core/validation/validation.go")),
		func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"), Held)

			Expect(cluster.TryUpdate(ctx, namespace, withPhase(corev1.NamespaceTerminating), "status")).
				To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(cluster.Get(ctx, namespace)).To(BeUnchangedSince(namespace))
			cluster.Delete(ctx, namespace)
			Expect(cluster.TryUpdate(ctx, namespace, withPhase(corev1.NamespaceActive), "status")).
				To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())
		})

	Specify("A deletecollection of namespaces is refused with 405.",
		Behavior("finalizers.namespace.no-deletecollection", Observed, Admin, Source("kubernetes#46407")), func(ctx SpecContext) {
			// A server that supports it must not delete a namespace, whatever it ignores in this request: no namespace matches the
			// selectors, none has the uid, and it is a dry-run in its body and in its query.
			response := cluster.TryDeleteCollection(ctx, fixtures.Namespace("none"), harmless...)
			Expect(response).To(HaveStatusCode(http.StatusMethodNotAllowed))
		})

	Specify("A delete of the namespace default, kube-system or kube-public must be refused with 403.",
		Behavior("finalizers.namespace.system-namespaces", Core, Namespace, Source(namespaceLifecycle), Promise(systemStays)), func(ctx SpecContext) {
			// A server that carries out dry-runs fails here, on a namespace of the spec.
			own := cluster.Create(ctx, fixtures.Namespace("ns"))
			Expect(Require(cluster.TryDelete(ctx, own, DryRunTwice))).To(BeAccepted())
			Expect(cluster.Get(ctx, own)).To(BeUnchangedSince(own))

			var refused []Response
			for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic} {
				if response := cluster.TryDelete(ctx, fixtures.Namespace(name), DryRunTwice); !apierrors.IsNotFound(response.Err) {
					refused = append(refused, response)
				}
			}
			if len(refused) == 0 {
				Skip("the server has none of the namespaces default, kube-system and kube-public")
			}
			Expect(refused).To(HaveEach(HaveStatusCode(http.StatusForbidden)))
		})
})

// harmless are the options of a request that deletes nothing, even if the server ignores all but one of them. The framework adds the label
// selector of the spec, which matches nothing.
var harmless = []DeleteOption{
	DryRunTwice, Limit(1), WithFieldSelector("metadata.name=none-of-" + Domain), IfUID("somebody-else"),
}

// withPhase sets the phase of a namespace's status.
func withPhase(phase corev1.NamespacePhase) ObjectOption {
	return func(namespace *Object) {
		// This cannot fail, because a namespace's status is an object.
		_ = unstructured.SetNestedField(namespace.Object, string(phase), "status", "phase")
	}
}

var _ = Describe("Content of terminating namespaces", func() {
	cluster := UseCluster()

	Specify("Creating an object in a terminating namespace must be refused with 403 and the cause NamespaceTerminating.",
		Behavior("finalizers.namespace.no-new-content", Core, Namespace, Source(namespaceLifecycle), Promise(nothingNew)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"), Held)
			in := cluster.In(namespace)

			cluster.Delete(ctx, namespace)

			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.Secret, fixtures.ReplicaSet) {
				response := in.TryCreate(ctx, kind("late"))
				Expect(response).To(HaveStatusCode(http.StatusForbidden))
				Expect(apierrors.HasStatusCause(response.Err, corev1.NamespaceTerminatingCause)).To(BeTrue(), response.Message())
			}
		})

	Specify("An object in a terminating namespace must accept updates and deletes.",
		Behavior("finalizers.namespace.content-stays-writable", Core, Namespace, Source(namespaceLifecycle), Promise(allRemoved)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"), Held)
			content := cluster.In(namespace).Create(ctx, fixtures.ConfigMap("content"), Held)

			cluster.Delete(ctx, namespace)

			note := map[string]any{"annotations": map[string]any{Domain + "/note": "written late"}}
			Expect(cluster.Update(ctx, content, WithMetadata(note)).GetAnnotations()).To(HaveKey(Domain + "/note"))
			cluster.Delete(ctx, content)
			Expect(cluster.Get(ctx, content)).To(And(BeTerminating(), HaveFinalizers(Hold)))
			cluster.Release(ctx, content)
			Expect(cluster.TryGet(ctx, content)).To(BeGone())
		})

	Specify("Creating an object in a namespace that does not exist, or no longer exists, must be refused with 404.",
		Behavior("finalizers.namespace.missing-namespace", Core, KCM, Namespace, Source(namespaceLifecycle), Promise(noneWithout)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			cluster.Delete(ctx, namespace)

			never := cluster.In(fixtures.Namespace("never-" + namespace.GetName()))
			Expect(never.TryCreate(ctx, fixtures.ConfigMap("content"))).To(HaveStatusCode(http.StatusNotFound))
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(namespace)))
			// The admission plugin learns about the deletion of the namespace on a separate watch.
			Eventually(ctx, func() Response { return cluster.In(namespace).TryCreate(ctx, fixtures.ConfigMap("content")) }).
				WithPolling(100 * time.Millisecond).Should(HaveStatusCode(http.StatusNotFound))
		})
})
