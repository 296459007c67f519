package workloads

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// MustBeScheduled skips the spec when no scheduler handles the pods of the default scheduler, which a cluster may replace by others. It
// creates a pod that fits no node and waits until a scheduler reports that.
func MustBeScheduled(ctx context.Context, c *framework.Cluster) {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, fixtures.UnscheduledPod("unschedulable"), framework.WithLabel(client.CanaryLabel, "true"),
		framework.WithField(corev1.DefaultSchedulerName, "spec", "schedulerName"),
		framework.WithField(map[string]any{framework.Domain + "/node": "none"}, "spec", "nodeSelector"))
	handled := framework.Property("be handled by a scheduler", func(pod *framework.Object) bool {
		return len(describe.Conditions(pod)) > 0
	})
	waiting := gomega.NewGomega(func(string, ...int) {
		ginkgo.Skip(fmt.Sprintf("no scheduler handled a pod of %s within %s", corev1.DefaultSchedulerName, c.Session().Timeout()))
	})
	waiting.Eventually(ctx, c.History(pod)).WithTimeout(c.Session().Timeout()).Should(framework.HaveObserved(framework.Matching(pod, handled)))
}
