package graceful

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// budgeted is the label in the selectors of budgets.
const budgeted = Domain + "/budgeted"

// Pages of the documentation on budgets.
const (
	disruptions     = "concepts/workloads/pods/disruptions"
	budgetReference = "reference/kubernetes-api/policy/pod-disruption-budget-v1"
)

// running is the status of a running pod, ready or not.
func running(ready corev1.ConditionStatus) map[string]any {
	return map[string]any{
		"phase":      string(corev1.PodRunning),
		"conditions": []any{map[string]any{"type": string(corev1.PodReady), "status": string(ready)}},
	}
}

var _ = Describe("PodDisruptionBudgets", func() {
	cluster := UseCluster()

	// runs creates running pods under the budgets of a name.
	runs := func(ctx SpecContext, name string, ready corev1.ConditionStatus, count int) []*Object {
		pods := make([]*Object, count)
		for i := range pods {
			manifest := fixtures.GhostBoundPod(fmt.Sprintf("%s-ready-%s-%d", name, strings.ToLower(string(ready)), i))
			pods[i] = cluster.SetStatus(ctx, cluster.Create(ctx, manifest, WithLabel(budgeted, name)), running(ready))
		}
		return pods
	}
	// pair creates a ready pod and one that is not ready, and a budget that requires some of them to remain and has counted them.
	pair := func(ctx SpecContext, name string, stay int64, options ...ObjectOption) (ready, unready *Object) {
		ready, unready = runs(ctx, name, corev1.ConditionTrue, 1)[0], runs(ctx, name, corev1.ConditionFalse, 1)[0]
		budget := cluster.Create(ctx, fixtures.PodDisruptionBudgetOf(stay, name, budgeted, name), options...)
		awaitBudget(ctx, cluster, budget, 2, 1)
		return ready, unready
	}
	evicted := func(ctx SpecContext, pod *Object) {
		GinkgoHelper()
		Expect(cluster.TryEvict(ctx, pod)).To(beAllowed())
		Expect(cluster.Get(ctx, pod)).To(BeTerminating())
	}
	protected := func(ctx SpecContext, pod *Object) {
		GinkgoHelper()
		Expect(cluster.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusTooManyRequests))
		Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
	}

	Specify("Of ten concurrent evictions under a PodDisruptionBudget that allows one disruption, exactly one must "+
		"succeed and the others must be refused with 429.",
		Behavior("graceful.eviction-concurrent", Core, Source(disruptions),
			Promise("then the Eviction API will allow voluntary disruption of one (but not two) pods at a time.")), func(ctx SpecContext) {
			for _, round := range []string{"once", "again", "once-more"} { // they do not collide each time
				pods := runs(ctx, round, corev1.ConditionTrue, 10)
				budget := cluster.Create(ctx, fixtures.PodDisruptionBudgetOf(9, round, budgeted, round))
				awaitBudget(ctx, cluster, budget, 10, 10)

				responses := InParallel(len(pods), func(i int) Response { return cluster.TryEvict(ctx, pods[i]) })

				through := slices.IndexFunc(responses, func(response Response) bool { return response.Err == nil })
				Expect(through).To(BeNumerically(">=", 0), "one eviction succeeds")
				Expect(cluster.Get(ctx, pods[through])).To(BeTerminating())
				for i, pod := range pods {
					if i != through {
						Expect(responses[i]).To(HaveStatusCode(http.StatusTooManyRequests))
						Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
					}
				}
			}
		})

	Specify("An eviction must decrement the disruptionsAllowed of the PodDisruptionBudget and add the pod to its disruptedPods in one write.",
		Behavior("graceful.eviction-writes-the-budget", Core, Source(budgetReference),
			Promise("A pod will be in this map from the time when the API server processed the eviction request ...")), func(ctx SpecContext) {
			pod := runs(ctx, "written", corev1.ConditionTrue, 3)[0]
			budget := cluster.Create(ctx, fixtures.PodDisruptionBudgetOf(1, "written", budgeted, "written"))
			awaitBudget(ctx, cluster, budget, 3, 3)
			disrupts := Property("have the pod in disruptedPods", func(budget *Object) bool {
				disrupted, _, _ := unstructured.NestedMap(budget.Object, "status", "disruptedPods")
				return disrupted[pod.GetName()] != nil
			})
			written := And(disrupts, HaveStatus("disruptionsAllowed", int64(1)))

			Expect(cluster.TryEvict(ctx, pod, DryRun)).To(beAllowed())
			evicted(ctx, pod)

			Eventually(ctx, cluster.History(budget)).Should(HaveObserved(
				Matching(budget, HaveStatus("disruptionsAllowed", int64(2))), Matching(budget, written)))
			Expect(cluster.History(budget)).NotTo(HaveObserved(Matching(budget, And(disrupts, Not(written)))))
		})

	Specify("A running pod that is not ready must be evictable under unhealthyPodEvictionPolicy AlwaysAllow, and by "+
		"default only while the PodDisruptionBudget is satisfied.",
		Behavior("graceful.eviction-unhealthy", Core, Source(budgetReference),
			Promise("AlwaysAllow policy means that all running pods ... not yet healthy ... can be evicted regardless of whether the criteria "+
				"in a PDB is met.")), func(ctx SpecContext) {
			always := WithField(string(policyv1.AlwaysAllow), "spec", "unhealthyPodEvictionPolicy")
			ready, unready := pair(ctx, "always", 2, always)
			evicted(ctx, unready)
			protected(ctx, ready)

			_, unready = pair(ctx, "disrupted", 2)
			protected(ctx, unready)

			ready, unready = pair(ctx, "healthy", 1)
			evicted(ctx, unready)
			protected(ctx, ready)
		})

	Specify("An eviction of a pod under two PodDisruptionBudgets must be refused with 500, even if both allow the disruption.",
		Behavior("graceful.eviction-two-budgets", Core, Source(apiEviction),
			Promise("`500 Internal Server Error`: the eviction is not allowed because there is a misconfiguration, like if multiple "+
				"PodDisruptionBudgets reference the same Pod.")), func(ctx SpecContext) {
			pod := runs(ctx, "twice", corev1.ConditionTrue, 1)[0]
			for _, name := range []string{"one", "other"} {
				budget := cluster.Create(ctx, fixtures.PodDisruptionBudgetOf(0, name, budgeted, "twice"))
				awaitBudget(ctx, cluster, budget, 1, 1)
			}

			Expect(cluster.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusInternalServerError))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
		})

	Specify("A PodDisruptionBudget with an empty selector must protect the pods of its namespace.",
		Behavior("graceful.eviction-empty-selector", Core, Namespace, Source("tasks/run-application/configure-pdb"),
			Promise("for policy/v1 an empty selector matches every pod in the namespace.")), func(ctx SpecContext) {
			inside := cluster.In(cluster.Create(ctx, fixtures.Namespace("budgeted")))
			inside.Create(ctx, fixtures.ServiceAccount(), Named(fixtures.ServiceAccountName)) // of the pod
			pod := inside.SetStatus(ctx, inside.Create(ctx, fixtures.GhostBoundPod("pod")), running(corev1.ConditionTrue))
			ofAll := WithField(map[string]any{}, "spec", "selector")
			budget := inside.Create(ctx, fixtures.PodDisruptionBudgetOf(1, "budget", budgeted, "all"), ofAll)
			awaitBudget(ctx, inside, budget, 1, 1)

			Expect(inside.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusTooManyRequests))
			Expect(inside.Get(ctx, pod)).To(BeUnchangedSince(pod))
		})

	Specify("A PodDisruptionBudget with maxUnavailable permits disruptions of the pods of a ReplicaSet although it also selects a pod without "+
		"a controller.",
		Behavior("graceful.eviction-unmanaged-pods", Observed, KCM, Source("pkg/controller/disruption/disruption.go")), func(ctx SpecContext) {
			const name = "unmanaged"
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.ReplicaSet("set"), WithField(name, "spec", "template", "metadata", "labels", budgeted))
			pods := cluster.AwaitDependents(ctx, set, 2)
			for _, pod := range pods {
				cluster.SetStatus(ctx, pod, running(corev1.ConditionTrue))
			}
			cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithLabel(budgeted, name))

			budget := cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", budgeted, name), WithField(int64(1), "spec", "maxUnavailable"))

			Eventually(ctx, cluster.History(budget)).Should(HaveObserved(Matching(budget, And(
				HaveStatus("expectedPods", int64(2)), HaveStatus("desiredHealthy", int64(1)), HaveStatus("disruptionsAllowed", int64(1))))))
			Expect(cluster.TryEvict(ctx, pods[0])).To(beAllowed())
		})

	Specify("The refusal of an eviction has a cause that explains why the disruption controller could not compute the PodDisruptionBudget.",
		Behavior("graceful.eviction-failed-sync", Observed, KCM, Since("1.35"), Source("pkg/registry/core/pod/storage/eviction.go")), func(ctx SpecContext) {
			budget := cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", budgeted, "failed"), WithField(int64(1), "spec", "maxUnavailable"))
			counted := HaveStatus("observedGeneration", budget.GetGeneration())
			Eventually(ctx, cluster.History(budget)).Should(HaveObserved(Matching(budget, counted)))
			unscalable := OwnedBy(cluster.Create(ctx, fixtures.ConfigMap("controller")), Controlling)
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithLabel(budgeted, "failed"), unscalable)
			pod = cluster.SetStatus(ctx, pod, running(corev1.ConditionTrue))
			Eventually(ctx, cluster.History(budget)).Should(HaveObserved(Matching(budget, counted), Matching(budget,
				HaveJSONPath("{.status.conditions[0].reason}", policyv1.SyncFailedReason))))

			refusal := cluster.TryEvict(ctx, pod)

			Expect(refusal).To(HaveStatusCode(http.StatusTooManyRequests))
			cause, _ := apierrors.StatusCause(refusal.Err, policyv1.DisruptionBudgetCause)
			Expect(cause.Message).To(ContainSubstring("failed sync"))
		})

	Specify("A PodDisruptionBudget must not prevent a delete or deletecollection of its pods.",
		Behavior("graceful.delete-ignores-budgets", Core, Source(disruptions),
			Promise("deleting deployments or pods bypasses Pod Disruption Budgets.")), func(ctx SpecContext) {
			ready, unready := pair(ctx, "deleted", 2)
			protected(ctx, ready)

			cluster.Delete(ctx, ready)
			cluster.DeleteCollection(ctx, unready, WithLabelSelector(budgeted+"=deleted"))

			Expect(cluster.Get(ctx, ready)).To(And(BeTerminating(), HaveGracePeriod(30)))
			Expect(cluster.Get(ctx, unready)).To(And(BeTerminating(), HaveGracePeriod(30)))
		})
})

// awaitBudget waits until the status of a PodDisruptionBudget with an integer minAvailable shows this number of pods, and of healthy ones.
// The disruption controller counts them; without built-in controllers the status is written in its place.
func awaitBudget(ctx context.Context, cluster *Cluster, budget *Object, pods, healthy int64) {
	GinkgoHelper()
	desired, _, _ := unstructured.NestedInt64(budget.Object, "spec", "minAvailable")
	status := map[string]any{
		"observedGeneration": budget.GetGeneration(), "expectedPods": pods, "currentHealthy": healthy, "desiredHealthy": desired,
		"disruptionsAllowed": max(healthy-desired, 0),
	}
	if _, absent := cluster.Session().Unsupported[v1alpha1.KCM]; absent {
		cluster.SetStatus(ctx, budget, status)
		return
	}
	var counted []types.GomegaMatcher
	for field, value := range status {
		counted = append(counted, HaveStatus(field, value))
	}
	Eventually(ctx, cluster.History(budget)).Should(HaveObserved(Matching(budget, And(counted...))))
}
