package checks_test

import (
	"cmp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
)

func TestOwnership(t *testing.T) {
	scenario := func(h *history.History) {
		deletesByUID(h)
		h.Settled, h.Streams[0].To = cmp.Or(h.Settled, "99"), "99"
	}
	rows := []row{
		// Why an object goes.
		{"a dependent goes after its owner", "ADDED a; ADDED d of a; delete a Background; DELETED a; DELETED d", nil},
		{"a dependent goes before its owner", "ADDED a; ADDED d of a; DELETED d", ownership.Kept},
		{"a dependent goes before its owner is created", "ADDED d of a; DELETED d; ADDED a", nil},
		{"a dependent is terminating before its owner goes", "ADDED a; ADDED d of a; MODIFIED d terminating holds f; delete a; DELETED a; DELETED d", ownership.Kept},
		{"a client deletes a dependent", "ADDED a; ADDED d of a; delete d; DELETED d", nil},
		{"a client may have deleted a dependent", "ADDED a; ADDED d of a; delete d : lost; DELETED d", nil},
		{"a client was refused to delete a dependent", "ADDED a; ADDED d of a; delete d : 409; DELETED d", ownership.Kept},
		{"a client changed a dependent", "ADDED a; ADDED d of a; patch d uid d; DELETED d", ownership.Kept},
		{"an object without owners goes", "ADDED d; DELETED d", ownership.Kept},
		{"an object without owners is terminating when it is seen first", "ADDED d terminating holds f", ownership.Kept},
		{"an object goes at the end", "ADDED d; DELETED d; settled", ownership.Kept},
		{"an object goes after the end", "ADDED d; settled; DELETED d", nil},
		{"one of two owners exists", "ADDED a; ADDED b; ADDED d of a,b; delete a; DELETED a; DELETED d", ownership.Kept},
		{"an owner is terminating and does not wait", "ADDED a; ADDED d of a; delete a; MODIFIED a terminating holds f; DELETED d", ownership.Kept},
		{"an owner with the finalizer is not terminating", "ADDED a holds foregroundDeletion; ADDED d of a; DELETED d", ownership.Kept},
		{"an object that owns itself waits for itself", "ADDED a of a; MODIFIED a foreground; DELETED a", ownership.Kept},
		{"an owner waits later", "ADDED a; ADDED d of a; DELETED d; delete a Foreground; MODIFIED a foreground; DELETED a", ownership.Kept},
		{"an owner is added to what must be deleted", "ADDED a; ADDED d of b; MODIFIED d of a; DELETED d", ownership.Latest},
		{"an owner is replaced after the deletion", "ADDED a; ADDED d of a; MODIFIED d terminating holds f; MODIFIED d of gone; DELETED d", ownership.Kept},
		{"an object replaces one that was held", "ADDED n uid x; delete n uid x Orphan; MODIFIED n orphan; DELETED n; ADDED n uid d; DELETED n", history.AtomicRemoval},
		{"an object replaces one that was not held", "ADDED n uid x; delete n uid x; DELETED n; ADDED n uid d; DELETED n", ownership.Kept},
		{"an object replaces one that was held, and is terminating", "ADDED n uid x; delete n uid x Orphan; MODIFIED n orphan; DELETED n; ADDED n uid d; MODIFIED n terminating holds f", ownership.Kept},
		{"an object goes after another that was held", "ADDED x; delete x Orphan; MODIFIED x orphan; DELETED x; ADDED d; DELETED d", ownership.Kept},
		{"changes of some objects were not seen", "ADDED d; ADDED x; DELETED d; EXPIRED 9 x", nil},

		// A cluster-scoped owner, whose versions are not known.
		{"a dependent goes before its cluster-scoped owner", "ADDED d of role; DELETED d; delete role", ownership.Kept},
		{"a dependent goes when its cluster-scoped owner may be gone", "ADDED d of role; delete role; DELETED d", nil},
		{"a dependent goes at the time of the delete of its cluster-scoped owner", "ADDED d of role; DELETED d at 5; delete role at 5", nil},
		{"the cluster-scoped owner is deleted twice", "ADDED d of role; delete role; DELETED d; delete role : lost", nil},
		{"another object than the cluster-scoped owner is deleted before", "ADDED a; ADDED d of role; delete a; DELETED a; DELETED d; delete role", ownership.Kept},
		{"another owner than the cluster-scoped one is gone", "ADDED d of gone; DELETED d; delete role", nil},
		{"another watch shows the removal later", "ADDED d of role; DELETED d; delete role; OTHER 2; DELETED d version 3", ownership.Kept},
		{"another watch shows the removal before", "ADDED d of role; DELETED d at 5; OTHER 2; DELETED d version 3 at 3; delete role at 4", ownership.Kept},
		{"no watch shows when a dependent is terminating", "ADDED d of role; get d : 200 terminating holds f version 3; DELETED d version 4; delete role", reads.WatchComplete},
		{"a dependent of the cluster-scoped owner is forgotten", "ADDED d of role; delete role", ownership.Collected},

		// Foreground deletion.
		{"the owner waits", "ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground; DELETED d; DELETED a", nil},
		{"the owner does not wait", "ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground; DELETED a; DELETED d", ownership.Blocked},
		{"the owner is seen first while it waits", "ADDED d of a!; delete a Foreground; ADDED a foreground; DELETED a; DELETED d", ownership.Blocked},
		{"the owner never was seen waiting", "ADDED a; ADDED d of a!; delete a Foreground; DELETED a foreground; DELETED d", reads.WatchDeleted},
		{"a dependent does not block", "ADDED a; ADDED d of a; delete a Foreground; MODIFIED a foreground; DELETED a; DELETED d", nil},
		{"a dependent blocks another owner", "ADDED a; ADDED b; ADDED d of b!; delete a Foreground; MODIFIED a foreground; DELETED a", nil},
		{"a dependent blocks from the wait on", "ADDED a; ADDED d; MODIFIED d of a!; delete a Foreground; MODIFIED a foreground; DELETED a; DELETED d", ownership.Blocked},
		{"a dependent is created while the owner waits", "ADDED a; delete a Foreground; MODIFIED a foreground; ADDED d of a!; DELETED a; DELETED d", nil},
		{"a dependent stops blocking after the removal", "ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground; DELETED a; MODIFIED d of nothing", ownership.Blocked},
		{"a client no longer wants the owner to wait", "ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground; delete a Background; DELETED a; DELETED d", nil},
		{"the owner does not wait, at the end", "ADDED a; ADDED b; ADDED d of a!,b; delete a Foreground; MODIFIED a foreground; DELETED a; settled", ownership.Blocked},
		{"the owner does not wait, after the end", "ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground; settled; DELETED a", ownership.Completed},
		{"the owner of the owner is gone", "ADDED a of b; ADDED d of a!; delete a Foreground; MODIFIED a foreground; DELETED a; DELETED d", ownership.Overruled},
		{"the former owner of the owner is gone", "ADDED b; ADDED a of gone; ADDED d of a!; delete a Foreground; MODIFIED a of b foreground; DELETED a; DELETED d", ownership.Overruled},
		{"the owner replaces one that was held", "ADDED n uid x; delete n uid x Orphan; MODIFIED n orphan; DELETED n; ADDED n uid a; ADDED d of a!; delete n uid a Foreground; MODIFIED n foreground; DELETED n; DELETED d", history.AtomicRemoval},

		// Orphaning deletion.
		{"a dependent is orphaned", "ADDED a; ADDED d of a; delete a Orphan; MODIFIED a orphan; MODIFIED d of nothing; DELETED a", nil},
		{"a dependent is not orphaned", "ADDED a; ADDED d of a; delete a Orphan; MODIFIED a orphan; DELETED a; DELETED d", ownership.Orphaned},
		{"a client adds a reference while dependents are orphaned", "ADDED a; ADDED d; delete a Orphan; MODIFIED a orphan; MODIFIED d of a; DELETED a; DELETED d", nil},

		// What the garbage collector leaves.
		{"an owner and its dependent are left", "ADDED a; ADDED d of a", nil},
		{"a dependent is forgotten", "ADDED a; ADDED d of a; delete a; DELETED a", ownership.Collected},
		{"a dependent is forgotten that is created at the end", "ADDED d of gone; settled", ownership.Collected},
		{"a dependent is forgotten that refers to its owner at the end", "ADDED d; MODIFIED d of gone; settled", ownership.Collected},
		{"a dependent goes at the end", "ADDED d of gone; DELETED d; settled", nil},
		{"a foreground deletion is forgotten", "ADDED a; delete a Foreground; MODIFIED a foreground", ownership.Completed},
		{"a foreground deletion goes on after the end", "ADDED a; delete a Foreground; MODIFIED a foreground; settled; MODIFIED a holds f", ownership.Completed},
		{"an orphaning deletion is forgotten", "ADDED a; delete a Orphan; MODIFIED a orphan", ownership.Completed},
		{"a client holds an object", "ADDED a; delete a; MODIFIED a terminating holds f", nil},
		{"a client adds the finalizer", "ADDED a holds foregroundDeletion", nil},
		{"a foreground deletion waits for a dependent that does not block", "ADDED a; ADDED d of a; delete a Foreground; MODIFIED a foreground", ownership.Completed},
		{"a foreground deletion waits for a dependent that is not deleted", "ADDED a; ADDED d of a!; delete a Foreground; MODIFIED a foreground", ownership.Completed},
		{"a foreground deletion blocks an owner that does not wait", "ADDED a; ADDED d of a!; delete d Foreground; MODIFIED d foreground", ownership.Completed},
		{"foreground deletions block each other", "ADDED a of d!; ADDED d of a!; delete a Foreground; delete d Foreground; MODIFIED d foreground; MODIFIED a foreground", ownership.Cycles},
		{"one of two foreground deletions blocks the other", "ADDED a of d!; ADDED d of a; delete a Foreground; delete d Foreground; MODIFIED a foreground; MODIFIED d foreground", ownership.Completed},
		{"one of two foreground deletions that block each other has ended", "ADDED a of d!; ADDED d of a!; delete a Foreground; delete d Foreground; MODIFIED a foreground; MODIFIED d foreground; delete d Background; DELETED d", ownership.Completed},

		// What the garbage collector misses when its watch was interrupted.
		{"the owner was replaced", "interrupted; ADDED n uid a; ADDED d of a; delete n uid a; DELETED n; ADDED n uid b", ownership.Recreated},
		{"the owner was replaced without an interruption", "ADDED n uid a; ADDED d of a; delete n uid a; DELETED n; ADDED n uid b", ownership.Collected},
		{"the owner was not replaced", "interrupted; ADDED a; ADDED d of a; ADDED n uid x; delete a; DELETED a; delete n uid x; DELETED n; ADDED n uid y", ownership.Collected},
		{"the owner replaced another object", "interrupted; ADDED n uid x; delete n uid x; DELETED n; ADDED n uid a; ADDED d of a; delete n uid a; DELETED n", ownership.Collected},
		{"one of two owners was replaced", "interrupted; ADDED n uid a; ADDED d of a,b; delete n uid a; DELETED n; ADDED n uid x", ownership.Recreated},
		{"an object that waited was replaced", "interrupted; ADDED n uid x; delete n uid x Foreground; MODIFIED n foreground; delete n uid x Background; DELETED n; ADDED n uid a; delete n uid a Foreground; MODIFIED n foreground", ownership.Recreated},
		{"an object that waited otherwise was replaced", "interrupted; ADDED n uid x; delete n uid x Orphan; MODIFIED n orphan; delete n uid x Background; DELETED n; ADDED n uid a; delete n uid a Foreground; MODIFIED n foreground", ownership.Completed},
		{"an object that did not wait was replaced", "interrupted; ADDED n uid x; delete n uid x; DELETED n; ADDED n uid a; delete n uid a Foreground; MODIFIED n foreground", ownership.Completed},
		{"a terminating dependent was replaced", "interrupted; ADDED a; ADDED n uid d of a! holds f; delete n uid d; MODIFIED n terminating; delete a Foreground; MODIFIED a foreground; DELETED n; ADDED n uid x of nothing", ownership.Recreated},
		{"a dependent was replaced", "interrupted; ADDED a; ADDED n uid d of a!; delete a Foreground; MODIFIED a foreground; delete n uid d; DELETED n; ADDED n uid x of nothing", ownership.Completed},
		{"a terminating dependent that did not block was replaced", "interrupted; ADDED a; ADDED n uid d of a holds f; delete n uid d; MODIFIED n terminating; delete a Foreground; MODIFIED a foreground; DELETED n; ADDED n uid x of nothing", ownership.Completed},
		{"a dependent was replaced before it could be orphaned", "interrupted; ADDED a; ADDED n uid d of a; delete n uid d; DELETED n; ADDED n uid x of nothing; delete a Orphan; MODIFIED a orphan", ownership.Recreated},
		{"a deletion that waits for one that was replaced blocks another", "interrupted; ADDED a; ADDED d of a!; ADDED n uid c of d! holds f; delete n uid c; MODIFIED n terminating; delete d Foreground; MODIFIED d foreground; DELETED n; ADDED n uid x of nothing; delete a Foreground; MODIFIED a foreground", ownership.Recreated},
		{"a deletion with an interruption blocks another", "interrupted; ADDED a; ADDED d of a!; delete d Foreground; MODIFIED d foreground; delete a Foreground; MODIFIED a foreground", ownership.Completed},
		{"clients hold objects that block each other", "ADDED a of d!; ADDED d of a!; delete a; delete d; MODIFIED a terminating holds f; MODIFIED d terminating holds f", nil},
		{"clients add the finalizer to objects that block each other", "ADDED a of d! holds foregroundDeletion; ADDED d of a! holds foregroundDeletion", nil},
	}
	for i := range rows {
		if strings.Contains(rows[i].clauses, "role") {
			expectEach(t, func(h *history.History) { scenario(h); h.ClusterOwner = &model.Owner{Name: "role", UID: "role"} }, rows[i:i+1])
		} else {
			expectEach(t, scenario, rows[i:i+1])
		}
	}
}

func TestUncollected(t *testing.T) {
	owned := func(uids ...string) (names model.Names) {
		for _, uid := range uids {
			names = names.With(model.Owner{Name: "n", UID: uid, Blocks: true}.String())
		}
		return names
	}
	waiting := func(uid string, owners ...string) model.Object {
		return model.Object{UID: uid, Terminating: true, Finalizers: model.Foreground, Owners: owned(owners...)}
	}
	NewWithT(t).Expect(ownership.Uncollected(map[string]model.Object{
		"owner": {UID: "o"}, "kept": {UID: "k", Owners: owned("o")}, "abandoned": {UID: "a", Owners: owned("gone")},
		"waiting": waiting("w"), "circle": waiting("x", "y"), "other": waiting("y", "x"),
	})).To(Equal([]string{"abandoned", "waiting"}))
}
