package operator

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/conformance"
	"github.com/deletion-conformance/deletion-conformance/examples/gadgets"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// explored are the mistakes that explorations find, each with the properties of which one must fail. An operator that leaves children to the object
// before, or cleans up late, is right again after the next write of the object, so that few rounds show it.
var explored = []struct {
	mistake gadgets.Mistake
	found   []string
}{
	{gadgets.FinalizerLate, []string{"finalizer-first"}},
	{gadgets.NoOwnerReference, []string{"children-removed"}},
	{gadgets.WrongOwner, []string{"children-removed"}},
	{gadgets.LeavesSecret, []string{"children-removed"}},
	{gadgets.MissesDeletes, []string{"released", "namespace"}},
	{gadgets.ReleasesAtEnd, []string{"foreign-finalizers"}},
	{gadgets.Recreates, []string{"not-recreated"}},
	{gadgets.RecreatesObject, []string{"not-recreated"}},
	{gadgets.WritesRecord, []string{"children-removed", "namespace"}},
	{gadgets.NeverReleases, []string{"released", "namespace"}},
	{gadgets.ForgetsConflicts, []string{"released", "served", "namespace"}},
	{gadgets.GivesUp, []string{"released", "served", "restored", "namespace"}},
	{gadgets.PatchesFinalizers, []string{"foreign-finalizers"}},
	{gadgets.StaleCache, []string{"served", "restored"}},
	{gadgets.ReleasesFirst, []string{"children-removed"}},
	{gadgets.ClearsFinalizers, []string{"foreign-finalizers"}},
	{gadgets.OverwritesAnnotations, []string{"foreign-fields"}},
	{gadgets.IgnoresOrphans, []string{"released", "namespace"}},
	{gadgets.IgnoresForeground, []string{"released", "namespace"}},
	{gadgets.WaitsForOthers, []string{"released", "namespace"}},
	{gadgets.RemembersNames, []string{"served", "restored"}},
	{gadgets.ServesOnce, []string{"served", "restored"}},
}

// soundFor is how long an operator without a mistake is explored.
var soundFor = flag.Duration("explore", time.Minute, "how long to explore the operator without a mistake")

const (
	// findsWithin is within what time a mistake must be found.
	findsWithin = 90 * time.Second
	// quietAfter is the timeout of quiet moments, several times what the operator needs, and removedAfter that of the cleanup.
	quietAfter, removedAfter = 8 * time.Second, 30 * time.Second
)

// TestExplorations explores the operator in this process, on one cluster. Objects that a mistake leaves behind are released by the next operator.
func TestExplorations(t *testing.T) {
	clustertest.Long(t)
	ctrl.SetLogger(logr.Discard()) // conflicts with the run are errors
	config := clustertest.Cluster(t, bin).RESTConfig()
	config.QPS, config.Burst = 500, 500
	operator{laboratory{kubernetes.NewForConfigOrDie(config), config, ""}, "gadgets"}.define(t)

	t.Run("one without a mistake", func(t *testing.T) {
		whole, err := explore(t, config, "", *soundFor)
		NewWithT(t).Expect(broken(whole)).To(BeEmpty())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	for _, mistake := range explored {
		t.Run(string(mistake.mistake), func(t *testing.T) {
			whole, err := explore(t, config, mistake.mistake, findsWithin)
			found := broken(whole)
			t.Logf("found %v after %s: %v", found, exploredFor(whole), err)
			NewWithT(t).Expect(slices.ContainsFunc(mistake.found, func(id string) bool { return slices.Contains(found, "explore.operator."+id) })).To(BeTrue(), "%v", found)
		})
	}
}

// explore explores the operator with a mistake, and with all faults that can be injected. It acts as another user, whose requests can be refused.
func explore(t *testing.T, config *rest.Config, mistake gadgets.Mistake, lasts time.Duration) (v1alpha1.Report, error) {
	t.Helper()
	asUser := rest.CopyConfig(config)
	asUser.Impersonate = rest.ImpersonationConfig{UserName: "gadgets", Groups: []string{"system:masters"}}
	return conformance.Explore(t.Context(), config, conformance.ExploreOptions{
		Options: conformance.Options{
			Resources: []string{"gadgets.gadgets.example.com"},
			RunController: func(ctx context.Context) error {
				return gadgets.Run(ctx, asUser, gadgets.Options{Group: "gadgets.example.com", Mistake: mistake, Workers: 4})
			},
			WaitTimeout: quietAfter, CleanupTimeout: removedAfter, OwnCluster: true,
			ReportDir: t.ArtifactDir(), Output: t.Output(),
		},
		Scenario: "operator", Inject: []string{"all"}, Seed: 1, For: lasts, ReduceFor: -1,
	})
}

// broken are the properties that failed, or from which the operator deviated.
func broken(whole v1alpha1.Report) []string {
	var ids []string
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			if upstream := "explore.object.atomic-removal"; result.ID == upstream {
				continue // Kubernetes itself deviates
			}
			if result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Deviated || result.Outcome == v1alpha1.Errored {
				ids = append(ids, result.ID)
			}
		}
	}
	return ids
}

// exploredFor is how long it took to find the first failure.
func exploredFor(whole v1alpha1.Report) time.Duration {
	first := time.Duration(0)
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			if after := time.Duration(result.Seconds * float64(time.Second)); result.Failure != nil && (first == 0 || after < first) {
				first = after.Round(time.Second / 10)
			}
		}
	}
	return first
}
