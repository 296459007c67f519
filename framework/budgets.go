package framework

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// AwaitBudget waits until the status of a PodDisruptionBudget with an integer minAvailable shows that it has this many pods,
// and how many of them are healthy. Counting them is the disruption controller's part; where no built-in controllers are at
// work, the status is written as that one would.
func (c *Cluster) AwaitBudget(ctx context.Context, budget *Object, pods, healthy int64) {
	ginkgo.GinkgoHelper()
	desired, _, _ := unstructured.NestedInt64(budget.Object, "spec", "minAvailable")
	status := map[string]any{
		"observedGeneration": budget.GetGeneration(), "expectedPods": pods, "currentHealthy": healthy, "desiredHealthy": desired,
		"disruptionsAllowed": max(healthy-desired, 0),
	}
	if _, absent := c.session.Unsupported[v1alpha1.KCM]; absent {
		c.SetStatus(ctx, budget, status)
		return
	}
	var counted []types.GomegaMatcher
	for field, value := range status {
		counted = append(counted, HaveStatus(field, value))
	}
	gomega.Eventually(ctx, c.History(budget)).Should(HaveObserved(Matching(budget, gomega.And(counted...))))
}
