package workloads

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// AwaitController is the barrier behind every "is not replaced" and "is not adopted": it makes a workload of each kind
// named, which must select what no other does, and waits until its controller says that it has what it wants. A controller
// reads the events of pods in order and takes its workloads one after the other, so it has then looked at all that happened
// before this call. Afterwards it lets the settling time pass. It is no barrier for Jobs, whose controller puts off what it
// hears of pods for a second.
func AwaitController(ctx context.Context, c *framework.Cluster, workloads ...*framework.Object) {
	ginkgo.GinkgoHelper()
	created := make([]*framework.Object, len(workloads))
	for i, manifest := range workloads {
		created[i] = c.Create(ctx, manifest, framework.Named(c.FreeName("canary-"+rand.String(6))), framework.WithLabel(client.CanaryLabel, "true"), onePod)
	}
	for _, workload := range created {
		gomega.Eventually(ctx, c.History(workload)).Should(framework.HaveObserved(framework.Matching(workload, haveSettled())), "the controller must reconcile the canary of a barrier")
	}
	c.Settle(ctx)
}

// onePod has a workload with a number of pods want one.
func onePod(workload *framework.Object) {
	if _, counts, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas"); counts {
		framework.WithField(int64(1), "spec", "replicas")(workload)
	}
}

// haveSettled matches a workload that has as many pods as it wants, by its own status.
func haveSettled() types.GomegaMatcher {
	number := func(object *framework.Object, path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(object.Object, path...)
		return value
	}
	return framework.Property("have as many pods as it wants", func(workload *framework.Object) bool {
		return number(workload, "status", "observedGeneration") == workload.GetGeneration() &&
			number(workload, "status", "replicas") == number(workload, "spec", "replicas") &&
			number(workload, "status", "currentNumberScheduled") == number(workload, "status", "desiredNumberScheduled")
	})
}
