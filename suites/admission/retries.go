package admission

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

// refused is a write that a controller sends in the course of a deletion, and that a webhook refuses several times.
type refused struct {
	// write describes the write in the statement. What is only observed has another verb than "must be".
	write, verb string
	// behavior are the id, the level, the features and the promise.
	behavior []any
	// rules select the write for the webhook.
	rules []webhooks.Option
	// prepare creates the objects. It returns the object that the controller writes, how the deletion begins, and the event that ends it.
	prepare func(ctx SpecContext, cluster *Cluster) (written *Object, begin func(), end EventMatcher)
	// timeout is how long the controller may take, where others can keep it busy.
	timeout time.Duration
}

// attempts is how often a write is refused: more often than events of the object, such as of its status, could make a controller send it.
const attempts = 3

const (
	finalizersPage = "concepts/overview/working-with-objects/finalizers"
	// whenSatisfied is a sentence of finalizersPage.
	whenSatisfied = "Each time a finalizer condition is satisfied, the controller removes that key from the resource's `finalizers` field."
)

// removal is the behavior of a controller that removes a finalizer.
func removal(id string, level v1alpha1.Level, features ...BehaviorOption) []any {
	return Behavior("admission.retries."+id, level, append(features, Hook, Source(finalizersPage), Promise(whenSatisfied))...)
}

var (
	updates = []webhooks.Option{webhooks.OnOperations(registrationv1.Update)}
	// releases are updates that remove a finalizer.
	releases = append(slices.Clone(updates), webhooks.MatchCondition("has(oldObject.metadata.finalizers) && "+
		"oldObject.metadata.finalizers.exists(f, !has(object.metadata.finalizers) || !(f in object.metadata.finalizers))"))
)

// deleting is a row of an object that is deleted and whose only finalizer its controller removes.
func deleting(create func(ctx SpecContext, cluster *Cluster) *Object, options ...DeleteOption) func(SpecContext, *Cluster) (*Object, func(), EventMatcher) {
	return func(ctx SpecContext, cluster *Cluster) (*Object, func(), EventMatcher) {
		GinkgoHelper()
		object := create(ctx, cluster)
		return object, func() { cluster.Delete(ctx, object, options...) }, Deleted(object)
	}
}

// created creates an object from a manifest.
func created(manifest func(string) *Object) func(SpecContext, *Cluster) *Object {
	return func(ctx SpecContext, cluster *Cluster) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, manifest("object"))
	}
}

// refusedWrites are the writes of Kubernetes' controllers that complete a deletion.
var refusedWrites = []refused{
	{
		write: "removal of the finalizer foregroundDeletion", behavior: removal("foreground", Core, GC),
		rules: releases, prepare: deleting(created(fixtures.ConfigMap), Foreground),
	},
	{
		write: "removal of the finalizer orphan", behavior: removal("orphan", Core, GC),
		rules: releases, prepare: deleting(created(fixtures.ConfigMap), Orphan),
	},
	{
		write: "removal of the owner reference from a dependent of an object in orphan deletion",
		behavior: Behavior("admission.retries.orphan-reference", Core, GC, Hook, Source("concepts/overview/working-with-objects/owners-dependents"),
			Promise("Kubernetes adds the `orphan` finalizer so that the controller ignores dependent resources after it deletes the owner object.")),
		rules: updates,
		prepare: func(ctx SpecContext, cluster *Cluster) (*Object, func(), EventMatcher) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			cluster.AwaitCollectorSync(ctx)
			return dependent, func() { cluster.Delete(ctx, owner, Orphan) }, Matching(dependent, BeOwnedBy())
		},
	},
	{
		write: "removal of the reference to a deleted owner from a dependent with another owner", verb: "is",
		behavior: Behavior("admission.retries.lost-reference", Observed, GC, Hook, Source("pkg/controller/garbagecollector/garbagecollector.go")),
		rules:    updates,
		prepare: func(ctx SpecContext, cluster *Cluster) (*Object, func(), EventMatcher) {
			owner, other := cluster.Create(ctx, fixtures.ConfigMap("owner")), cluster.Create(ctx, fixtures.ConfigMap("other"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner), OwnedBy(other))
			return dependent, func() { cluster.Delete(ctx, owner, Background) }, Matching(dependent, BeOwnedBy(other))
		},
	},
	{
		write: "removal of the finalizer kubernetes.io/pvc-protection", behavior: removal("claim", Core, KCM),
		rules: releases, prepare: deleting(created(fixtures.PersistentVolumeClaim)),
	},
	{
		write: "removal of the finalizer kubernetes.io/pv-protection", behavior: removal("volume", Core, KCM, Volume),
		rules: releases, prepare: deleting(created(fixtures.CSIVolume)),
	},
	{
		write:    "removal of the finalizer kubernetes.io/vac-protection",
		behavior: removal("volume-attributes-class", Extended, KCM, Class, Since("1.34")),
		rules:    releases, prepare: deleting(created(fixtures.VolumeAttributesClass)),
	},
	{
		write:    "removal of the finalizer resource.kubernetes.io/delete-protection",
		behavior: removal("resource-claim", Extended, KCM, Since("1.34")),
		rules:    releases, prepare: deleting(created(fixtures.ResourceClaim)),
	},
	{
		write:    "removal of the finalizer scheduling.k8s.io/podgroup-protection",
		behavior: removal("pod-group", Extended, KCM, Since("1.37")),
		rules:    releases, prepare: deleting(func(ctx SpecContext, cluster *Cluster) *Object {
			group := cluster.Create(ctx, fixtures.PodGroup("object"))
			if len(group.GetFinalizers()) == 0 {
				Skip("the server does not protect PodGroups (GenericWorkload)")
			}
			return group
		}),
	},
	{
		// After the deletion the controller waits for 10 s.
		write:    "removal of the finalizer networking.k8s.io/service-cidr-finalizer",
		behavior: removal("service-cidr", Extended, KCM, Admin, Since("1.33"), Slow),
		rules:    releases, prepare: deleting(func(ctx SpecContext, cluster *Cluster) *Object {
			cidr := cluster.Create(ctx, fixtures.ServiceCIDR("object"), within(cluster.Create(ctx, fixtures.Service("any"))))
			Eventually(ctx, cluster.History(cidr)).Should(HaveObserved(Matching(cidr, HaveCondition("Ready"))))
			return cidr
		}),
	},
	{
		write: "removal of the finalizer batch.kubernetes.io/job-tracking", behavior: removal("job-pod", Core, KCM),
		rules: releases, prepare: deleting(func(ctx SpecContext, cluster *Cluster) *Object {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			job := cluster.Create(ctx, fixtures.Job("job"), WithField(int64(1), "spec", "parallelism"), WithField(int64(1), "spec", "completions"),
				WithField(int64(0), "spec", "backoffLimit"),                             // so that nothing else happens to the Job
				WithField(fixtures.GhostNode(), "spec", "template", "spec", "nodeName")) // nor soon to the pod
			return cluster.AwaitDependents(ctx, job, 1)[0]
		}, Grace(0)),
	},
	{
		write: "removal of the finalizer kubernetes of a namespace", behavior: removal("namespace", Core, KCM, Namespace),
		rules:   append(slices.Clone(updates), webhooks.OnResources("namespaces/finalize")),
		prepare: deleting(created(fixtures.Namespace)),
	},
	{
		write: "removal of the finalizer customresourcecleanup.apiextensions.k8s.io", behavior: removal("definition", Core, CRD),
		rules: append(slices.Clone(releases), webhooks.OnResources("customresourcedefinitions/status")), timeout: definitions.Finalization,
		prepare: deleting(func(ctx SpecContext, cluster *Cluster) *Object {
			return definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
		}),
	},
	{
		write: "update of a claim that a StatefulSet with whenScaled Delete removes",
		behavior: Behavior("admission.retries.statefulset-claim", Extended, GC, KCM, Hook, Source("concepts/workloads/controllers/statefulset"),
			Promise("With the `whenScaled` policy, only PVCs corresponding to Pod replicas being scaled down are deleted, after their Pods have been "+
				"deleted.")),
		rules: updates,
		prepare: func(ctx SpecContext, cluster *Cluster) (*Object, func(), EventMatcher) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			cluster.Watch(ctx, fixtures.PersistentVolumeClaim("any"))
			set := cluster.Create(ctx, fixtures.StatefulSetWithClaims("set"), WithField("Delete", "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"))
			cluster.AwaitDependents(ctx, set, 2)
			claim := fixtures.PersistentVolumeClaim("data-" + set.GetName() + "-1")
			claim.SetNamespace(set.GetNamespace())
			claim = cluster.Get(ctx, claim)
			return claim, func() { cluster.Update(ctx, set, WithField(int64(1), "spec", "replicas")) }, Deleted(claim)
		},
	},
	{
		write: "delete of the token Secret of a deleted ServiceAccount",
		behavior: Behavior("admission.retries.token", Core, KCM, Hook, Source("reference/access-authn-authz/service-accounts-admin"),
			Promise("watches for ServiceAccount deletion and deletes all corresponding ServiceAccount token Secrets")),
		prepare: func(ctx SpecContext, cluster *Cluster) (*Object, func(), EventMatcher) {
			account := cluster.Create(ctx, fixtures.ServiceAccount())
			secret := cluster.Create(ctx, fixtures.TokenSecret("token", account.GetName()))
			Eventually(ctx, cluster.History(secret)).Should(HaveObserved(Matching(secret, Not(HaveJSONPath("{.data.token}", "")))))
			return secret, func() { cluster.Delete(ctx, account) }, Deleted(secret)
		},
	},
	{
		write: "delete of a Job whose ttlSecondsAfterFinished has passed",
		behavior: Behavior("admission.retries.job-ttl", Core, KCM, Hook, Source("concepts/workloads/controllers/job"),
			Promise("When the TTL controller cleans up the Job, it will delete the Job cascadingly")),
		prepare: func(ctx SpecContext, cluster *Cluster) (*Object, func(), EventMatcher) {
			job := cluster.Create(ctx, fixtures.Job("job"), WithField(int64(0), "spec", "completions"))
			Eventually(ctx, cluster.History(job)).Should(HaveObserved(Matching(job, HaveCondition(string(batchv1.JobComplete)))))
			begin := func() { cluster.Update(ctx, job, WithField(int64(0), "spec", "ttlSecondsAfterFinished")) }
			return job, begin, Matching(job, HaveFinalizer(metav1.FinalizerDeleteDependents))
		},
	},
}

// within gives a ServiceCIDR a small range around the address of a Service, which another ServiceCIDR contains. So it adds no addresses.
func within(service *Object) ObjectOption {
	GinkgoHelper()
	own, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	address, err := netip.ParseAddr(own)
	Expect(err).NotTo(HaveOccurred(), "the Service has an address")
	return WithField([]any{netip.PrefixFrom(address, address.BitLen()-4).Masked().String()}, "spec", "cidrs")
}

var _ = Describe("Refused writes of controllers", func() {
	cluster := UseCluster()

	for _, refused := range refusedWrites {
		Specify("The "+refused.write+" "+cmp.Or(refused.verb, "must be")+" tried again after it was refused.", refused.behavior, func(ctx SpecContext) {
			written, begin, end := refused.prepare(ctx, cluster)
			webhook := webhooks.Validating(ctx, cluster, refused.rules...).Within(refused.timeout)
			webhook.DenyTimes(written, attempts, denial) // some controllers give up after ten

			begin()

			webhook.AwaitReviews(ctx, written, attempts+1)
			Eventually(ctx, cluster.History(written)).WithTimeout(cluster.Session().AtLeast(refused.timeout)).Should(HaveObserved(end))
		})
	}
})
