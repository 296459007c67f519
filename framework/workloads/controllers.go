package workloads

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// AwaitController is the barrier behind every "is not replaced" and "is not adopted". It creates a workload of each given kind, whose
// selector must be unique, and waits until its controller reports the desired state. A controller reads the events of pods in order and
// handles its workloads one by one, so by then it has processed all earlier events. Then it waits for the settling time. It is not a
// barrier for Jobs, whose controller delays the processing of pods by a second.
func AwaitController(ctx context.Context, c *framework.Cluster, workloads ...*framework.Object) {
	ginkgo.GinkgoHelper()
	awaitController(ctx, c, gomega.Default, workloads)
}

// MustHaveFreeWorker is AwaitController while a webhook holds a request of the controller. It skips the spec when the controller handles no
// other workload meanwhile, because it has only one worker.
func MustHaveFreeWorker(ctx context.Context, c *framework.Cluster, workloads ...*framework.Object) {
	ginkgo.GinkgoHelper()
	busy := gomega.NewGomega(func(string, ...int) {
		ginkgo.Skip(fmt.Sprintf("the controller handled no other %s within %s while a webhook held one of its requests", workloads[0].GetKind(), c.Session().Timeout()))
	})
	awaitController(ctx, c, busy, workloads)
}

// awaitController creates the canaries of a barrier, and waits for them.
func awaitController(ctx context.Context, c *framework.Cluster, waiting gomega.Gomega, workloads []*framework.Object) {
	ginkgo.GinkgoHelper()
	created := make([]*framework.Object, len(workloads))
	for i, manifest := range workloads {
		created[i] = c.Create(ctx, manifest, framework.Named(c.FreeName("canary-"+rand.String(6))), framework.WithLabel(client.CanaryLabel, "true"), onePod)
	}
	for _, workload := range created {
		waiting.Eventually(ctx, c.History(workload)).WithTimeout(c.Session().Timeout()).Should(framework.HaveObserved(framework.Matching(workload, haveSettled())), "the controller must reconcile the canary of a barrier")
	}
	c.Settle(ctx)
}

// onePod scales a workload with replicas to 1.
func onePod(workload *framework.Object) {
	if _, counts, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas"); counts {
		framework.WithField(int64(1), "spec", "replicas")(workload)
	}
}

// haveSettled matches a workload whose status reports the desired number of pods.
func haveSettled() types.GomegaMatcher {
	number := func(object *framework.Object, path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(object.Object, path...)
		return value
	}
	return framework.Property("have the desired number of pods", func(workload *framework.Object) bool {
		return number(workload, "status", "observedGeneration") == workload.GetGeneration() &&
			number(workload, "status", "replicas") == number(workload, "spec", "replicas") &&
			number(workload, "status", "currentNumberScheduled") == number(workload, "status", "desiredNumberScheduled")
	})
}
