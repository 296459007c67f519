package kubectl

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/kubectl"
)

var _ = Describe("Waiting for deletion", func() {
	cluster := UseCluster()

	Specify("The kubectl delete command must return after the removal with --wait, immediately with --wait=false, and "+
		"must fail when --timeout expires.",
		Behavior("kubectl.wait", Core, Kubectl,
			Source(reference),
			Promise("If true, wait for resources to be gone before returning. This waits for finalizers.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
			command := kubectl.New(ctx, cluster)

			waiting := command.Start(ctx, "delete", "configmap", object.GetName(), "--wait")
			start := time.Now()
			limited := command.Start(ctx, "delete", "configmap", object.GetName(), "--timeout=1s")
			Expect(command.Run(ctx, "delete", "configmap", object.GetName(), "--wait=false")).To(
				And(kubectl.HaveExitCode(0), kubectl.HaveDeleted(object), HaveField("Requests", Not(ContainElement(reading)))))
			mustTimeOut(ctx, limited, start)
			waiting.AwaitRequest(ctx, kubectl.Watching())
			cluster.Release(ctx, object)

			Expect(waiting.Wait(ctx)).To(kubectl.HaveExitCode(0))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("The kubectl wait command with --for=delete must return after the removal, immediately if the object is "+
		"absent, and must fail when --timeout expires.",
		Behavior("kubectl.wait-for-delete", Core, Kubectl,
			Source("reference/kubectl/generated/kubectl_wait"),
			Promise("the command can wait for the given set of resources to be created or deleted")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
			command := kubectl.New(ctx, cluster)
			cluster.Delete(ctx, object)

			waiting := command.Start(ctx, "wait", "--for=delete", "configmap/"+object.GetName(), "--timeout=1h")
			start := time.Now()
			limited := command.Start(ctx, "wait", "--for=delete", "configmap/"+object.GetName(), "--timeout=1s")
			Expect(command.Run(ctx, "wait", "--for=delete", "configmap/"+cluster.FreeName("absent"), "--timeout=1h")).To(
				And(kubectl.HaveExitCode(0), HaveField("Requests", Not(ContainElement(kubectl.Watching())))))
			mustTimeOut(ctx, limited, start)
			waiting.AwaitRequest(ctx, kubectl.Watching())
			cluster.Release(ctx, object)

			Expect(waiting.Wait(ctx)).To(kubectl.HaveExitCode(0))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("The kubectl delete command stops waiting when a deleted object is replaced by an object with the same name and another uid.",
		Behavior("kubectl.wait-recreated", Observed, Kubectl, Source("kubernetes#66136, kubernetes#135563")), func(ctx SpecContext) {
			command := kubectl.New(ctx, cluster)
			// replaced runs kubectl delete for objects that were replaced before its reads get through.
			replaced := func(held types.GomegaMatcher, objects ...*Object) kubectl.Result {
				arguments := []string{"delete", "configmap"}
				for _, object := range objects {
					arguments = append(arguments, object.GetName())
				}
				deleting := command.Start(ctx, arguments...)
				deleting.AwaitRequest(ctx, held)
				for _, object := range objects {
					if len(object.GetFinalizers()) > 0 {
						cluster.Release(ctx, object)
					}
					cluster.Create(ctx, fixtures.ConfigMap("namesake"), Named(object.GetName()))
				}
				command.Release()
				return deleting.Wait(ctx)
			}
			create := func(name string, options ...ObjectOption) *Object {
				return cluster.Create(ctx, fixtures.ConfigMap(name), options...)
			}

			command.Delay(http.MethodGet)
			Expect(replaced(reading, create("gone"), create("held", Held))).To(kubectl.HaveExitCode(0))
			if command.IsAtLeast("1.36") {
				command.DelayCollections()
				Expect(replaced(HaveField("Name", BeEmpty()), create("first", Held), create("second", Held))).To(kubectl.HaveExitCode(0))
			}
		})
})

// mustTimeOut expects a kubectl with a timeout of a second to fail, and not earlier.
func mustTimeOut(ctx SpecContext, limited *kubectl.Process, start time.Time) {
	GinkgoHelper()
	Expect(limited.Wait(ctx)).To(kubectl.HaveExitCode(1))
	Expect(time.Since(start)).To(BeNumerically(">=", time.Second), "kubectl does not give up before --timeout expires")
}
