package options

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/protocols"
)

var _ = Describe("Encodings of delete requests", func() {
	cluster := UseCluster()

	// beFollowed expects a delete and a deletecollection to follow the options in a body of a media type.
	beFollowed := func(ctx SpecContext, mediaType string) {
		GinkgoHelper()
		kept := cluster.Create(ctx, fixtures.ConfigMap("kept"), Held)
		cluster.Delete(ctx, kept, Encoded(mediaType), DryRun)
		cluster.DeleteCollection(ctx, kept, Encoded(mediaType), DryRun)
		Expect(cluster.Get(ctx, kept)).To(BeUnchangedSince(kept), mediaType)

		cluster.Delete(ctx, kept, Encoded(mediaType), Foreground)
		waiting := And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents))
		Eventually(ctx, cluster.History(kept)).Should(HaveObserved(Matching(kept, waiting)), mediaType)
		cluster.Release(ctx, kept)

		members := cluster.Create(ctx, fixtures.ConfigMap("member"), Held)
		cluster.DeleteCollection(ctx, members, Encoded(mediaType), Foreground)
		Eventually(ctx, cluster.History(members)).Should(HaveObserved(Matching(members, waiting)), mediaType)
		cluster.Release(ctx, members)
	}

	Specify("A delete and a deletecollection must follow delete options in YAML.",
		Behavior("options.yaml-body", Core, AnyResource, Source(apiConcepts),
			Promise("Kubernetes also supports the `application/yaml` media type for both requests and responses.")), func(ctx SpecContext) {
			beFollowed(ctx, runtime.ContentTypeYAML)
		})

	Specify("A delete and a deletecollection follow delete options in protobuf.",
		Behavior("options.protobuf-body", Observed, AnyResource, Source("k8s.io/apiserver/pkg/endpoints/handlers/delete.go")), func(ctx SpecContext) {
			beFollowed(ctx, runtime.ContentTypeProtobuf)
		})

	Specify("Where CBOR is served, a delete and a deletecollection must follow delete options in CBOR.",
		Behavior("options.cbor-body", Extended, AnyResource, Since("1.32"), Source("KEP-4222")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			if cluster.TryDelete(ctx, object, Encoded(runtime.ContentTypeCBOR), DryRun).StatusCode == http.StatusUnsupportedMediaType {
				Skip("the API server does not accept CBOR: the feature gate CBORServingAndStorage is off")
			}
			cluster.Delete(ctx, object)

			beFollowed(ctx, runtime.ContentTypeCBOR)
		})

	Specify("A delete follows its delete options and returns the object over HTTP/1.1 and over HTTP/2.",
		Behavior("options.http-versions", Observed, AnyResource, Source("k8s.io/apiserver/pkg/server/secure_serving.go")), func(ctx SpecContext) {
			for name, protocol := range map[string]string{"http-1": HTTP1, "http-2": HTTP2} {
				object := cluster.Create(ctx, fixtures.ConfigMap(name), Held)
				over := protocols.Over(ctx, cluster, protocol)

				Expect(over.TryDelete(ctx, object, DryRun)).To(And(BeAccepted(), BeSameObjectAs(object)), protocol)
				Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object), protocol)
				Expect(over.TryDelete(ctx, object)).To(And(BeAccepted(), BeSameObjectAs(object), BeTerminating()), protocol)
			}
		})
})

var _ = Describe("Representations of delete responses", func() {
	cluster := UseCluster()

	Specify("A delete that accepts only a Table or only PartialObjectMetadata deletes the object and returns that representation or a Status.",
		Behavior("options.response-representations", Observed, AnyResource, Source("k8s.io/apiserver/pkg/endpoints/handlers/response.go")), func(ctx SpecContext) {
			for kind, mediaType := range map[string]string{"Table": TableJSON, "PartialObjectMetadata": MetadataJSON} {
				accepting := protocols.Accepting(cluster, mediaType)
				free := cluster.Create(ctx, fixtures.ConfigMap("free"))
				held := cluster.Create(ctx, fixtures.ConfigMap("held"), Held)

				removed, kept := Require(accepting.TryDelete(ctx, free)), Require(accepting.TryDelete(ctx, held))

				Expect(removed.Object.GetKind()).To(BeElementOf(kind, "Status"))
				Expect(kept.Object.GetKind()).To(Equal(kind))
				Eventually(ctx, cluster.History(free)).Should(HaveObserved(Deleted(free))) // a controller may hold it
				Expect(cluster.Get(ctx, held)).To(BeTerminating())
				cluster.Release(ctx, held)
				Expect(cluster.TryGet(ctx, held)).To(BeGone())
			}
		})
})
