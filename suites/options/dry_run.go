package options

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// Pages on dry-runs, metadata and delete options.
const (
	apiConcepts   = "reference/using-api/api-concepts"
	objectMeta    = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	deleteOptions = "reference/kubernetes-api/definitions/delete-options-v1-meta"
)

var _ = Describe("Dry-run creates", func() {
	cluster := UseCluster()

	// owner is an object that does not exist: the API server does not look up owners when it stores a reference.
	owner := func(uid types.UID) *Object {
		object := fixtures.ConfigMap("never-there")
		object.SetUID(uid)
		return object
	}

	Specify("A dry-run create must return 201 with the object, create nothing, and leave the name free.",
		Behavior("options.dry-run-creates-nothing", Core, AnyResource, CreatesNothing,
			Source(apiConcepts),
			Promise("Kubernetes guarantees that dry-run requests will not be persisted in storage or have any other side effects.")), func(ctx SpecContext) {
			for range 2 {
				response := Require(cluster.DryRun().TryCreate(ctx, fixtures.ConfigMap("dry")))

				Expect(response).To(HaveStatusCode(http.StatusCreated))
				Expect(response.Object.GetName()).To(Equal(cluster.Prepare(ctx, fixtures.ConfigMap("dry")).GetName()))
				Expect(cluster.TryGet(ctx, response.Object)).To(BeGone())
				Expect(cluster.List(ctx, response.Object)).To(BeEmpty())
			}
		})

	Specify("A dry-run create must ignore or refuse deletionTimestamp and deletionGracePeriodSeconds.",
		Behavior("options.dry-run-create-ignores-deletion-timestamp", Core, AnyResource, CreatesNothing,
			Source(objectMeta),
			Promise("This field is set by the server when a graceful deletion is requested by the user, and is not directly settable "+
				"by a client.")), func(ctx SpecContext) {
			response := cluster.DryRun().TryCreate(ctx, fixtures.ConfigMap("born"), Held, WithMetadata(map[string]any{
				"deletionTimestamp": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), "deletionGracePeriodSeconds": int64(0),
			}))

			if apierrors.IsInvalid(response.Err) || apierrors.IsBadRequest(response.Err) {
				return
			}
			born := Require(response).Object
			Expect(born).NotTo(BeTerminating())
			Expect(born.GetDeletionGracePeriodSeconds()).To(BeNil(), "deletionGracePeriodSeconds is not set")
		})

	Specify("A dry-run create must return the object with the requested finalizers and owner references.",
		Behavior("options.dry-run-keeps-metadata", Core, AnyResource, CreatesNothing,
			Source(apiConcepts),
			Promise("the final object which would have been persisted is still returned to the user, along with the normal status "+
				"code")), func(ctx SpecContext) {
			one, two := owner("one"), owner("two")

			asked := Require(cluster.DryRun().TryCreate(ctx, fixtures.ConfigMap("asked"), Held, WithFinalizers(Domain+"/other"), OwnedBy(one), OwnedBy(two))).Object

			Expect(asked).To(And(HaveFinalizer(Hold), HaveFinalizer(Domain+"/other"), BeOwnedBy(one, two)))
		})

	Specify("A dry-run create with a malformed finalizer, an owner reference without uid, or two references with "+
		"controller true must be refused with 422.",
		Behavior("options.dry-run-invalid-metadata", Core, AnyResource, CreatesNothing,
			Source(apiConcepts),
			Promise("evaluate a request through the typical request stages (admission chain, validation, merge conflicts) up until "+
				"persisting objects to storage")), func(ctx SpecContext) {
			for _, bad := range [][]ObjectOption{
				{WithFinalizers("no name at all!")},
				{OwnedBy(owner(""))},
				{OwnedBy(owner("one"), Controlling), OwnedBy(owner("two"), Controlling)},
			} {
				Expect(cluster.DryRun().TryCreate(ctx, fixtures.ConfigMap("refused"), bad...)).To(HaveStatusCode(http.StatusUnprocessableEntity))
			}
		})
})

var _ = Describe("Dry-run deletes of absent objects", func() {
	cluster := UseCluster()

	Specify("A dry-run delete of an absent object must return 404, regardless of the other delete options.",
		Behavior("options.dry-run-absent-object", Core, AnyResource, CreatesNothing,
			Source(apiConcepts),
			Promise("The response body for the request is as close as possible to a non-dry-run response.")), func(ctx SpecContext) {
			never := cluster.Prepare(ctx, fixtures.ConfigMap("never"))
			silent := func(*DeleteRequest) {}

			for _, option := range []DeleteOption{silent, Background, Foreground, Orphan, Grace(0), Grace(60), IfUID("somebody-else"), IfVersion("1")} {
				Expect(cluster.TryDelete(ctx, never, option, DryRunTwice)).To(HaveStatusCode(http.StatusNotFound))
			}
			Expect(cluster.TryGet(ctx, never)).To(BeGone())
		})

	Specify("A dry-run delete with invalid options is refused with 422 even if the object is absent.",
		Behavior("options.dry-run-invalid-options", Observed, AnyResource, CreatesNothing,
			Source("k8s.io/apiserver/pkg/endpoints/handlers/delete.go")), func(ctx SpecContext) {
			never := cluster.Prepare(ctx, fixtures.ConfigMap("never"))
			alsoSome := func(request *DeleteRequest) { request.Options.DryRun = []string{metav1.DryRunAll, "Some"} }
			orphans := func(request *DeleteRequest) { OrphanDependents(true)(request); Background(request) }

			for _, option := range []DeleteOption{Policy("Sideways"), orphans, alsoSome} {
				Expect(cluster.TryDelete(ctx, never, DryRunTwice, option)).To(HaveStatusCode(http.StatusUnprocessableEntity))
			}
		})
})
