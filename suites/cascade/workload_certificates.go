package cascade

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("PodCertificateRequests", func() {
	cluster := UseCluster()

	Specify("The PodCertificateRequest that a kubelet creates for a pod is deleted after the pod.",
		Behavior("cascade.workload.pod-certificate-requests", Observed, GC, Node, Since("1.37"), Source("pkg/kubelet/podcertificate")), func(ctx SpecContext) {
			certificate := map[string]any{
				"signerName": Domain + "/serves-nobody", "keyType": "ED25519", "credentialBundlePath": "bundle.pem",
			}
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithField([]any{
				map[string]any{"name": "notes", "emptyDir": map[string]any{}},
				map[string]any{"name": "certificate", "projected": map[string]any{"sources": []any{map[string]any{"podCertificate": certificate}}}},
			}, "spec", "volumes"))
			request := workloads.AwaitUnlabeled(ctx, cluster, fixtures.PodCertificateRequest(), pod)

			cluster.Delete(ctx, pod)

			workloads.AwaitDeletion(ctx, cluster, pod)
			workloads.AwaitUnlabeledGone(ctx, cluster, request)
		})
})
