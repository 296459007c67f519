package cascade

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
)

var _ = Describe("Permission to write owner references", func() {
	cluster := UseCluster()

	// The deleter may do everything except update finalizers of ConfigMaps, the editor everything except create and delete them.
	deleter := func(ctx SpecContext) *Cluster {
		return users.As(ctx, cluster, "deleter", users.May("configmaps", "get", "create", "update", "delete"))
	}
	editor := func(ctx SpecContext) *Cluster {
		return users.As(ctx, cluster, "editor", users.May("configmaps", "get", "update"), users.May("configmaps/finalizers", "update"))
	}
	// mustEnforce skips the spec when the other rule of the plugin is not enforced either, because the plugin is then disabled.
	mustEnforce := func(other Response) {
		GinkgoHelper()
		if other.Err == nil {
			Skip("the admission plugin OwnerReferencesPermissionEnforcement is off")
		}
	}

	Specify("With OwnerReferencesPermissionEnforcement, setting blockOwnerDeletion to true must require permission to "+
		"update the finalizers of the owner.",
		Behavior("cascade.permission.block-needs-finalizers", Extended, AnyResource, Admin,
			Source(admissionControllers),
			Promise("only users with **update** permission to the `finalizers` subresource of the referenced *owner* can change "+
				"it")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			deleter, editor := deleter(ctx), editor(ctx)
			blocker := users.As(ctx, cluster, "blocker", users.May("configmaps", "create"), users.May("configmaps/finalizers", "update"))
			mustEnforce(editor.TryUpdate(ctx, dependent, NotOwnedBy(owner)))

			Expect(deleter.TryCreate(ctx, fixtures.ConfigMap("blocking"), OwnedBy(owner, Blocking))).To(HaveStatusCode(http.StatusForbidden))
			Expect(deleter.TryUpdate(ctx, dependent, blockingOnly(owner))).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))

			Expect(deleter.TryCreate(ctx, fixtures.ConfigMap("owned"), OwnedBy(owner, NonBlocking))).To(HaveStatusCode(http.StatusCreated))
			Expect(blocker.TryCreate(ctx, fixtures.ConfigMap("blocking"), OwnedBy(owner, Blocking))).To(HaveStatusCode(http.StatusCreated))
		})

	Specify("With OwnerReferencesPermissionEnforcement, changing the owner references of an object must require "+
		"permission to delete the object.",
		Behavior("cascade.permission.reference-needs-delete", Extended, AnyResource, Admin,
			Source(admissionControllers),
			Promise("only users with **delete** permission to the object can change it")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			free := cluster.Create(ctx, fixtures.ConfigMap("free"))
			deleter, editor := deleter(ctx), editor(ctx)
			mustEnforce(deleter.TryCreate(ctx, fixtures.ConfigMap("blocking"), OwnedBy(owner, Blocking)))

			Expect(editor.TryUpdate(ctx, dependent, NotOwnedBy(owner))).To(HaveStatusCode(http.StatusForbidden))
			Expect(editor.TryUpdate(ctx, free, OwnedBy(owner))).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
			Expect(cluster.Get(ctx, free)).To(BeUnchangedSince(free))

			Expect(editor.TryUpdate(ctx, free, WithLabel(Domain+"/edited", "yes"))).To(HaveStatusCode(http.StatusOK))
			Expect(deleter.TryUpdate(ctx, dependent, NotOwnedBy(owner))).To(HaveStatusCode(http.StatusOK))
		})
})

// blockingOnly sets the reference to an owner to a blocking one.
func blockingOnly(owner *Object) ObjectOption {
	return func(object *Object) {
		NotOwnedBy(owner)(object)
		OwnedBy(owner, Blocking)(object)
	}
}
