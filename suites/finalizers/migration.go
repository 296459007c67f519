package finalizers

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

var _ = Describe("Storage version migration", func() {
	cluster := UseCluster()

	Specify("A StorageVersionMigration must neither release a terminating object nor create a deleted object again.",
		Behavior("finalizers.storage-version-migration", Core, GC, KCM, CRD, Admin, Hook, SharedKind, Since("1.37"),
			Source(prevented.source), Promise(prevented.quote)), func(ctx SpecContext) {
			thing := definitions.Shared(ctx, cluster)
			gone := cluster.Create(ctx, thing("gone"))
			one, two := cluster.Create(ctx, thing("one")), cluster.Create(ctx, thing("two"))
			held := cluster.Create(ctx, thing("held"), WithFinalizers(first))
			cluster.Delete(ctx, held)
			terminating := cluster.Get(ctx, held)
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Update))
			webhook.DuringReview(gone, func() { cluster.Delete(ctx, gone) }) // between the migration's list and its write
			webhook.DuringReview(one, func() { cluster.Delete(ctx, two) })   // the first write of the two finds no second one
			webhook.DuringReview(two, func() { cluster.Delete(ctx, one) })

			migration := cluster.Create(ctx, fixtures.StorageVersionMigration("things", cluster.Session().CustomGroup(), "things"))
			Eventually(ctx, cluster.History(migration)).Should(HaveObserved(Matching(migration, Not(HaveStatus("resourceVersion", nil)))))
			// The migration begins once the garbage collector has seen a later write of the resource. The controller retries ever more rarely,
			// unless the migration is written. More writes could be conflicts for the controller's last one.
			cluster.AwaitCollectorSync(ctx, cluster.Create(ctx, thing("later")))
			cluster.Update(ctx, migration, WithLabel(Domain+"/written", "yes"))
			Eventually(ctx, cluster.History(migration)).Should(HaveObserved(Matching(migration, HaveCondition("Succeeded"))))

			Expect(webhook.Reviews(gone)).NotTo(BeEmpty(), "the migration has written the object that was deleted meanwhile")
			Expect(cluster.Get(ctx, held)).To(kept(terminating))
			Expect(cluster.TryGet(ctx, gone)).To(BeGone())
			Expect([]Response{cluster.TryGet(ctx, one), cluster.TryGet(ctx, two)}).To(ConsistOf(HaveStatusCode(http.StatusOK), BeGone()))
		})

	Specify("A StorageVersionMigration of a resource that does not exist fails after a minute.",
		Behavior("finalizers.storage-version-migration-of-nothing", Observed, KCM, Admin, Slow, Since("1.37"),
			Source("pkg/controller/storageversionmigrator/resourceversion.go")), func(ctx SpecContext) {
			migration := cluster.Create(ctx, fixtures.StorageVersionMigration("nothing", cluster.Group(), "things"))

			// The controller tries again after twice the time, again and again.
			Eventually(ctx, cluster.History(migration)).WithTimeout(cluster.Session().AtLeast(3 * time.Minute)).Should(
				HaveObserved(Matching(migration, HaveCondition("Failed"))))
		})
})
