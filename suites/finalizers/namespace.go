package finalizers

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

const (
	// namespaces is the page of the documentation on the deletion of namespaces.
	namespaces = "tasks/administer-cluster/namespaces"
	// everythingGoes is a sentence of that page.
	everythingGoes = "This deletes _everything_ under the namespace!"
	// namespaceReference is the API reference of namespaces.
	namespaceReference = "reference/kubernetes-api/core/namespace-v1"
	// heldBySpec is a sentence of that page about the finalizers in a spec.
	heldBySpec = "Finalizers is an opaque list of values that must be empty to permanently remove object from storage."
	// namespaceConditions describes the conditions, which no page of the documentation does.
	namespaceConditions = "k8s.io/api/core/v1/types.go"
	// podsFirst specifies an order since 1.33.
	podsFirst = "KEP-5080"
)

// podGrace is a grace period of a pod, in seconds, with which the namespace controller retries within namespaceRetry: after half of its
// estimate, which is the grace period, plus a second, or after 5 s when the grace period is over (pkg/controller/namespace).
const (
	podGrace       = 8
	namespaceRetry = 6 * time.Second
)

// terminatingNamespace matches a namespace that is being deleted.
func terminatingNamespace() OmegaMatcher {
	return And(BeTerminating(), HavePhase(corev1.NamespaceTerminating))
}

var _ = Describe("Terminating namespaces", func() {
	cluster := UseCluster()

	Specify("A deleted namespace must have the phase Terminating, and must be removed only after all its content, "+
		"including custom resources.",
		Behavior("finalizers.namespace.deletes-content", Core, KCM, Namespace, CRD, Source(namespaces), Promise(everythingGoes)), func(ctx SpecContext) {
			group := cluster.Group()
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(group))
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			in.Create(ctx, fixtures.ServiceAccount(), Named(fixtures.ServiceAccountName)) // of the pod
			content := []*Object{in.Create(ctx, fixtures.CustomResource(group, "content"))}
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.Secret, fixtures.UnscheduledPod) {
				content = append(content, in.Create(ctx, kind("content")))
			}

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(
				HaveObserved(Matching(namespace, terminatingNamespace()), Deleted(namespace)))
			for _, object := range content {
				Expect(cluster.TryGet(ctx, object)).To(BeGone())
				Eventually(ctx, cluster.History(object)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(object)))
			}
		})

	Specify("A terminating namespace with content held by finalizers has the conditions NamespaceContentRemaining and "+
		"NamespaceFinalizersRemaining, and is removed once the content is released.",
		Behavior("finalizers.namespace.remaining-content", Observed, KCM, Namespace, Source(namespaceConditions)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			configMap := in.Create(ctx, fixtures.ConfigMap("config-map"), Held)
			secret := in.Create(ctx, fixtures.Secret("secret"), WithFinalizers(first))

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Matching(namespace, And(
				HaveCondition("NamespaceContentRemaining"), HaveCondition("NamespaceFinalizersRemaining")))))
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())
			for _, object := range []*Object{configMap, secret} {
				Expect(cluster.Get(ctx, object)).To(BeTerminating())
				cluster.Update(ctx, object, WithoutFinalizers(Hold, first))
			}
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(namespace)))
		})

	Specify("The conditions of a terminating namespace name the remaining resources and finalizers and how many there are.",
		Behavior("finalizers.namespace.condition-messages", Observed, KCM, Namespace,
			Source("pkg/controller/namespace/deletion/status_condition_utils.go")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			in.Create(ctx, fixtures.ConfigMap("one"), Held)
			in.Create(ctx, fixtures.ConfigMap("two"), Held)
			in.Create(ctx, fixtures.Secret("secret"), WithFinalizers(first))

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Matching(namespace, And(
				HaveConditionSaying("NamespaceContentRemaining", "configmaps. has 2 ", "secrets. has 1 "),
				HaveConditionSaying("NamespaceFinalizersRemaining", Hold+" in 2 ", first+" in 1 ")))))
		})

	Specify("A finalizer in the metadata or spec of an empty namespace must prevent its removal until the finalizer is "+
		"removed, in the spec through the finalize subresource.",
		Behavior("finalizers.namespace.own-finalizers", Core, KCM, Namespace, Source(namespaceReference), Promise(heldBySpec)),
		func(ctx SpecContext) {
			inMetadata := cluster.Create(ctx, fixtures.Namespace("in-metadata"), Held)
			inSpec := cluster.Create(ctx, fixtures.Namespace("in-spec"), withSpecFinalizers(second))

			cluster.Delete(ctx, inMetadata)
			cluster.Delete(ctx, inSpec)

			// The controller removes its own finalizer a request after it has processed the content.
			Eventually(ctx, cluster.History(inMetadata)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(inMetadata, WithTransform(specFinalizers, BeEmpty()))))
			Eventually(ctx, cluster.History(inSpec)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(inSpec, WithTransform(specFinalizers, ConsistOf(second)))))
			awaitNamespaceController(ctx, cluster, inMetadata, inSpec)
			Expect(cluster.Get(ctx, inMetadata)).To(And(terminatingNamespace(), HaveFinalizers(Hold)))
			Expect(specFinalizers(cluster.Get(ctx, inSpec))).To(ConsistOf(second))

			Expect(cluster.TryUpdate(ctx, inSpec, withSpecFinalizers(), "finalize")).To(HaveStatusCode(http.StatusOK))
			cluster.Release(ctx, inMetadata)
			for _, namespace := range []*Object{inMetadata, inSpec} {
				Expect(cluster.TryGet(ctx, namespace)).To(BeGone())
			}
		})

	Specify("The finalizers of an object can be removed after its namespace was removed without it, by a write to the finalize subresource.",
		Behavior("finalizers.namespace.forced-leaves-releasable", Observed, KCM, Namespace, Since("1.37"),
			Source("apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("forced"))
			in := cluster.In(namespace)
			left := in.Create(ctx, fixtures.ConfigMap("left"), Held)
			cluster.Delete(ctx, namespace)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(namespace, HaveConditionSaying("NamespaceContentRemaining", "configmaps. has 1 ")))) // the rest is gone

			Expect(cluster.TryUpdate(ctx, namespace, withSpecFinalizers(), "finalize")).To(HaveStatusCode(http.StatusOK))
			Eventually(ctx, cluster.History(namespace)).Should(HaveObserved(Deleted(namespace)))
			released := in.TryUpdate(ctx, left, WithoutFinalizers(Hold))
			if released.Err != nil {
				// The admission plugin NamespaceLifecycle permits every delete. In a new namespace of the name, the object can be released.
				deleted := in.TryDelete(ctx, left, DryRun)
				cluster.Create(ctx, fixtures.Namespace("again"), Named(namespace.GetName()))
				if deleted.Err != nil {
					Skip("a policy or webhook refuses requests in a namespace that was removed: " + deleted.Message())
				}
			}

			Expect(released).To(HaveStatusCode(http.StatusOK))
			Expect(in.TryGet(ctx, left)).To(BeGone())
		})

	Specify("The pods of a terminating namespace must be removed before its other content is deleted.",
		Behavior("finalizers.namespace.pods-first", Core, KCM, Namespace, Since("1.33"), Source(podsFirst),
			Promise("Delete all pods in the namespace ... Wait for all the pods to be stopped or deleted. ... Delete all the other resources")),
		func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			// Held, because the pod garbage collector may come before a busy namespace controller.
			pod := createPodIn(ctx, in, fixtures.GhostBoundPod("pod"), WithGrace(podGrace), Held)
			configMap := in.Create(ctx, fixtures.ConfigMap("config-map"))
			secret := in.Create(ctx, fixtures.Secret("secret"))

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Terminating(pod)))
			awaitNamespaceController(ctx, cluster, namespace)
			for _, object := range []*Object{configMap, secret} {
				Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
			}
			cluster.Release(ctx, pod)
			cluster.Outlast(ctx, cluster.Now(ctx).Add(cluster.Session().Slowed(namespaceRetry)))
			remaining := []Response{cluster.TryGet(ctx, configMap), cluster.TryGet(ctx, secret)}
			if cluster.TryGet(ctx, pod).Err == nil { // it has not come by now
				Expect(remaining).To(HaveExactElements(BeUnchangedSince(configMap), BeUnchangedSince(secret)))
				cluster.Delete(ctx, pod, Grace(0))
			}
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.TryGet(ctx, configMap)).To(BeGone())
			Expect(cluster.TryGet(ctx, secret)).To(BeGone())
		})

	Specify("A pod with a finalizer must keep the other content of its terminating namespace from being deleted.",
		Behavior("finalizers.namespace.held-pod-holds-content", Core, KCM, Namespace, Since("1.33"), Source(podsFirst),
			Promise("Delete all pods in the namespace ... Wait for all the pods to be stopped or deleted. ... Delete all the other resources")),
		func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			pod := createPodIn(ctx, in, fixtures.UnscheduledPod("pod"), Held)
			configMap := in.Create(ctx, fixtures.ConfigMap("config-map"))

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Terminating(pod)))
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, configMap)).To(BeUnchangedSince(configMap))

			cluster.Release(ctx, pod)
			Eventually(ctx, cluster.History(configMap)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(configMap)))
		})

	Specify("A namespace delete must give a running pod its own grace period, and the namespace must remain until the pod is removed.",
		Behavior("finalizers.namespace.waits-for-pod-grace", Core, KCM, Namespace, SimulatedNode, Source("concepts/workloads/pods/pod-lifecycle"),
			Promise("By default, all deletes are graceful within 30 seconds.")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			node := cluster.Create(ctx, fixtures.Node("node")) // without it the pod garbage collector may delete the pod first
			pod := createPodIn(ctx, cluster.In(namespace), fixtures.GhostBoundPod("pod"), OnNode(node.GetName()), WithGrace(8))

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Terminating(pod)))
			Expect(cluster.History(pod)).To(HaveObserved(Matching(pod, And(BeTerminating(), HaveGracePeriod(8)))))
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(8)))
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())

			cluster.Delete(ctx, pod, Grace(0))
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(namespace)))
		})

	Specify("A namespace delete with the propagation policy Orphan must still delete the content of the namespace.",
		Behavior("finalizers.namespace.orphan-policy", Core, KCM, Namespace, Source(namespaces), Promise(everythingGoes)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			configMap := in.Create(ctx, fixtures.ConfigMap("config-map"), OwnedBy(namespace))
			secret := in.Create(ctx, fixtures.Secret("secret"))

			cluster.Delete(ctx, namespace, Orphan)

			Eventually(ctx, cluster.History(configMap)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(configMap)))
			Eventually(ctx, cluster.History(secret)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(secret)))
		})

	Specify("The namespace controller does not write again to content that is terminating with finalizers.",
		Behavior("finalizers.namespace.content-deleted-once", Observed, KCM, Namespace, Source("kubernetes#73098")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			stays := in.Create(ctx, fixtures.ConfigMap("stays"), Held)
			goes := in.Create(ctx, fixtures.ConfigMap("goes"), Held)

			cluster.Delete(ctx, namespace)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(
				HaveObserved(Matching(namespace, HaveConditionSaying("NamespaceContentRemaining", "configmaps. has 2 "))))
			marked := cluster.Get(ctx, stays)
			Expect(marked).To(BeTerminating())

			cluster.Release(ctx, goes)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(
				HaveObserved(Matching(namespace, HaveConditionSaying("NamespaceContentRemaining", "configmaps. has 1 "))))
			Expect(cluster.Get(ctx, stays)).To(BeUnchangedSince(marked))
		})
})

// createPodIn creates a pod, and the ServiceAccount that it needs.
func createPodIn(ctx SpecContext, in *Cluster, manifest *Object, options ...ObjectOption) *Object {
	GinkgoHelper()
	in.Create(ctx, fixtures.ServiceAccount(), Named(fixtures.ServiceAccountName))
	return in.Create(ctx, manifest, options...)
}

// withSpecFinalizers sets the finalizers of a namespace's spec.
func withSpecFinalizers(finalizers ...string) ObjectOption {
	return func(namespace *Object) {
		// This cannot fail, because a namespace's spec is an object.
		_ = unstructured.SetNestedStringSlice(namespace.Object, finalizers, "spec", "finalizers")
	}
}

// specFinalizers returns the finalizers of a namespace's spec.
func specFinalizers(namespace *Object) []string {
	finalizers, _, _ := unstructured.NestedStringSlice(namespace.Object, "spec", "finalizers")
	return finalizers
}

// awaitNamespaceController is the barrier behind every "the namespace remains". It waits until the namespace controller has processed the
// content of terminating namespaces, which their conditions show, and then for the settling time. The controller starts 5 s after the
// delete.
func awaitNamespaceController(ctx context.Context, cluster *Cluster, namespaces ...*Object) {
	GinkgoHelper()
	attended := Property("be attended to by the namespace controller", func(namespace *Object) bool {
		conditions, _, _ := unstructured.NestedSlice(namespace.Object, "status", "conditions")
		return len(conditions) > 0
	})
	for _, namespace := range namespaces {
		Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Matching(namespace, attended)))
	}
	cluster.Settle(ctx)
}
