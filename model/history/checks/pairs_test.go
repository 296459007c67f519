package checks_test

import (
	"testing"

	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/requests"
)

// TestPairs checks what the answers to two requests at the same moment exclude together, for each pair of operations.
func TestPairs(t *testing.T) {
	expectEach(t, func(*history.History) {}, []row{
		// Creates, and applies that create.
		{"one of two creates", "create a at 1 until 5 : 201 version 11; create a at 2 until 4 : 409", nil},
		{"both of two creates", "create a at 1 until 5 : 201 version 11; create a at 2 until 4 : 201 uid v version 12", requests.Linearizable},
		{"none of two creates", "create a at 1 until 5 : 409; create a at 2 until 4 : 409", requests.Refusals},
		{"a create and the dry-run of another", "create a at 1 until 5 : 201 version 11; create a dry-run at 2 until 4 : 201", nil},
		{"a create, and a dry-run after it", "create a : 201 version 11; create a dry-run : 201", requests.Linearizable},
		{"an apply of what is created", "create a value 1 at 1 until 5 : 201 version 11; apply a value 2 at 2 until 4 : 200 version 12", nil},
		{"an apply creates, and a create does not", "apply a value 2 at 2 until 4 : 201 version 11; create a value 1 at 1 until 5 : 409", nil},
		{"an apply and a create both create", "create a value 1 at 1 until 5 : 201 version 11; apply a value 2 at 2 until 4 : 201 version 12", requests.Linearizable},
		{"an apply and a create, and none creates", "apply a value 2 at 2 until 4 : 200 version 11; create a value 1 at 1 until 5 : 409", requests.Linearizable},
		{"one of two applies creates", "apply a value 2 at 2 until 4 : 201 version 11; apply a value 3 at 1 until 5 : 200 version 12", nil},
		{"both of two applies create", "apply a value 2 at 2 until 4 : 201 version 11; apply a value 3 at 1 until 5 : 201 version 12", requests.Linearizable},
		{"none of two applies creates", "apply a value 2 at 2 until 4 : 200 version 11; apply a value 3 at 1 until 5 : 200 version 12", requests.Linearizable},
		{"one of two updates creates", "update a value 2 at 2 until 4 : 201 version 11; update a value 3 at 1 until 5 : 200 version 12", nil},
		{"both of two updates create", "update a value 2 at 2 until 4 : 201 version 11; update a value 3 at 1 until 5 : 201 version 12", requests.Linearizable},
		{"a patch of what is created", "create a value 1 at 1 until 5 : 201 version 11; patch a value 2 at 2 until 4 : 200 version 12", nil},
		{"a patch before a create", "create a value 1 at 1 until 5 : 201 version 11; patch a value 2 at 2 until 4 : 404", nil},

		// Writes of what exists.
		{"one of two updates of a version", "create a : 201 version 11; update a version 11 value 2 at 2 until 5 : 200 version 12; update a version 11 value 3 at 3 until 4 : 409", nil},
		{"both of two updates of a version", "create a : 201 version 11; update a version 11 value 2 at 2 until 5 : 200 version 12; update a version 11 value 3 at 3 until 4 : 200 version 13", requests.Linearizable},
		{"none of two updates of a version", "create a : 201 version 11; update a version 11 value 2 at 2 until 5 : 409; update a version 11 value 3 at 3 until 4 : 409", requests.Refusals},
		{"two updates of a version, one of which changes nothing", "create a value 1 : 201 version 11; update a version 11 value 1 at 2 until 5 : 200 version 11; update a version 11 value 3 at 3 until 4 : 200 version 12", nil},
		{"two patches", "create a : 201 version 11; patch a value 2 at 2 until 5 : 200 version 12; patch a label x at 3 until 4 : 200 version 13", nil},
		{"two patches, and one is lost", "create a value 1 : 201 version 11; patch a value 2 at 2 until 5 : 200 version 12; patch a label x at 3 until 4 : 200 value 1 version 13", requests.Linearizable},
		{"a patch and a patch of a version", "create a : 201 version 11; patch a version 11 value 2 at 2 until 5 : 200 version 12; patch a label x at 3 until 4 : 200 version 13", nil},
		{"a patch of a version after another", "create a : 201 version 11; patch a label x at 3 until 4 : 200 version 12; patch a version 11 value 2 at 2 until 5 : 200 version 13", requests.Linearizable},

		// Deletes.
		{"one of two deletes", "create a : 201 version 11; delete a at 2 until 5; delete a at 3 until 4 : 404", nil},
		{"both of two deletes", "create a : 201 version 11; delete a at 2 until 5; delete a at 3 until 4", requests.Linearizable},
		{"none of two deletes", "create a : 201 version 11; delete a at 2 until 5 : 404; delete a at 3 until 4 : 404", requests.Linearizable},
		{"both of two deletes of a held object", "create a holds f : 201 version 11; delete a at 2 until 5 : 200 terminating version 12; delete a at 3 until 4 : 200 terminating version 12", nil},
		{"both of two deletes of the last version", "create a : 201 version 11; delete a version 11 at 2 until 5; delete a version 11 at 3 until 4", requests.Linearizable},
		{"one of two deletes of the last version", "create a : 201 version 11; delete a version 11 at 2 until 5; delete a version 11 at 3 until 4 : 404", nil},
		{"one of two deletes of the last version, and a conflict", "create a : 201 version 11; delete a version 11 at 2 until 5; delete a version 11 at 3 until 4 : 409", requests.RefusedByVersion},
		{"both of two deletes of a uid", "create a : 201 version 11; delete a uid a at 2 until 5; delete a uid a at 3 until 4", requests.Linearizable},
		{"one of two deletes of a uid, and a conflict", "create a : 201 version 11; delete a uid a at 2 until 5; delete a uid a at 3 until 4 : 409", requests.RefusedByUID},
		{"three deletes, and two of them", "create a : 201 version 11; delete a at 2 until 6; delete a at 3 until 5 : 404; delete a at 4 until 5", requests.Linearizable},
		{"two deletes, and a lost one", "create a : 201 version 11; delete a at 2 until 5; delete a at 3 until 4 : lost", nil},
		{"two deletes, and a create between them", "create a : 201 version 11; delete a at 2 until 7; delete a at 3 until 6; create a at 3 until 5 : 201 uid v version 13", nil},
		{"a delete and its dry-run", "create a : 201 version 11; delete a at 2 until 5; delete a dry-run at 3 until 4", nil},
		{"a dry-run after a delete", "create a : 201 version 11; delete a; delete a dry-run", requests.Linearizable},
		{"a foreground and a background delete", "create a : 201 version 11; delete a Background at 2 until 5; delete a Foreground at 3 until 4 : 200 foreground version 12", nil},
		{"a foreground after a background delete", "create a : 201 version 11; delete a Background; delete a Foreground : 200 foreground version 12", requests.Linearizable},
		{"two background deletes after a foreground one", "create a holds f : 201 version 11; delete a Foreground : 200 terminating holds f,foregroundDeletion version 12; patch a holds foregroundDeletion : 200 version 13; delete a Background at 5 until 9; delete a Background at 6 until 8", requests.Linearizable},

		// Deletes and writes.
		{"a create before a delete", "create a at 1 until 5 : 201 version 11; delete a at 2 until 4", nil},
		{"a create after a delete", "create a at 1 until 5 : 201 version 11; delete a at 2 until 4 : 404", nil},
		{"a create of what is deleted", "create a : 201 version 11; delete a at 2 until 5; create a at 3 until 4 : 409", nil},
		{"a create after what is deleted", "create a : 201 version 11; delete a at 2 until 5; create a at 3 until 4 : 201 uid v version 13", nil},
		{"a create with what is not deleted", "create a : 201 version 11; delete a at 2 until 5 : 404; create a at 3 until 4 : 201 uid v version 13", requests.Linearizable},
		{"a delete of a uid after a create", "create a : 201 version 11; delete a at 2 until 5; create a at 2 until 5 : 201 uid v version 13; delete a uid a at 7 until 8", requests.Linearizable},
		{"a patch before a delete", "create a : 201 version 11; delete a at 2 until 5; patch a value 2 at 3 until 4 : 200 version 12", nil},
		{"a patch after a delete", "create a : 201 version 11; delete a at 2 until 5; patch a value 2 at 3 until 4 : 404", nil},
		{"a patch of what another deletes", "create a : 201 version 11; delete a at 2 until 5 : 404; patch a value 2 at 3 until 4 : 404", requests.Linearizable},
		{"an apply before a delete", "create a : 201 version 11; delete a at 2 until 5; apply a value 2 at 3 until 4 : 200 version 12", nil},
		{"an apply after a delete", "create a : 201 version 11; delete a at 2 until 5; apply a value 2 at 3 until 4 : 201 new uid v version 13 value 2", nil},
		{"an apply creates what another delete has found", "create a : 201 version 11; delete a at 2 until 5 : 404; apply a value 2 at 3 until 4 : 200 version 12", requests.Linearizable},
		{"an update and a delete of the same version", "create a : 201 version 11; update a version 11 value 2 at 2 until 5 : 200 version 12; delete a version 11 at 3 until 4 : 409", nil},
		{"both an update and a delete of the same version", "create a : 201 version 11; update a version 11 value 2 at 2 until 5 : 200 version 12; delete a version 11 at 3 until 4", requests.Linearizable},
		{"neither an update nor a delete of the same version", "create a : 201 version 11; update a version 11 value 2 at 2 until 5 : 409; delete a version 11 at 3 until 4 : 404", requests.Linearizable},

		// Deletecollections. They succeed where another request has removed what they selected.
		{"a delete and a deletecollection", "create a : 201 version 11; delete a at 2 until 5; deletecollection at 3 until 4 : 200 11 a", nil},
		{"a delete before a deletecollection", "create a : 201 version 11; delete a at 2 until 5; deletecollection at 3 until 4 : 200 12", nil},
		{"a delete after a deletecollection", "create a : 201 version 11; delete a at 2 until 5 : 404; deletecollection at 3 until 4 : 200 11 a", nil},
		{"neither a delete nor a deletecollection", "create a : 201 version 11; delete a at 2 until 5 : 404; deletecollection at 3 until 4 : 200 11", requests.CollectionRequests},
		{"both of two deletes beside a deletecollection", "create a : 201 version 11; delete a at 2 until 6; delete a at 3 until 5; deletecollection at 3 until 4 : 200 11 a", requests.Linearizable},
		{"both of two deletecollections", "create a : 201 version 11; deletecollection at 2 until 5 : 200 11 a; deletecollection at 3 until 4 : 200 11 a; get a : 404", nil},
		{"a deletecollection, and a create after it", "create a : 201 version 11; deletecollection at 2 until 5 : 200 11 a; create a at 3 until 4 : 201 uid v version 13", nil},
		{"a deletecollection of what is created", "deletecollection at 1 until 5 : 200 11 a; create a at 2 until 4 : 201 version 11; get a at 6 : 404", nil},
		{"a patch after a deletecollection", "create a : 201 version 11; deletecollection at 2 until 5 : 200 11 a; patch a value 2 at 3 until 4 : 404", nil},

		// The removal of the last finalizer. It succeeds where another request was first, too.
		{"a delete before the last finalizer is removed", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; delete a at 5 until 6 : 200 holds f version 12", nil},
		{"a delete after the last finalizer is removed", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; delete a at 5 until 6 : 404", nil},
		{"a finalizer is removed beside the first delete", "create a holds f : 201 version 11; delete a at 2 until 5; patch a holds nothing at 3 until 4 : 200 version 12", nil},
		{"the last finalizer is removed twice at once", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; patch a holds nothing at 5 until 6 : 200 version 12", history.AtomicRemoval},
		{"the last finalizer is removed by two updates of a version", "create a holds f : 201 version 11; delete a : 200 terminating version 12; update a version 12 holds nothing at 4 until 7 : 200 version 12; update a version 12 holds nothing at 5 until 6 : 200 version 12", history.AtomicRemoval},
		{"the last finalizer is removed, and removed again", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing : 200 version 12; patch a holds nothing : 200 version 12", requests.Linearizable},
		{"one of two removes the last finalizer", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; patch a holds nothing at 5 until 6 : 404", nil},
		{"a create before the last finalizer is removed", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; create a at 5 until 6 : 409", nil},
		{"a create after the last finalizer is removed", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; create a at 5 until 6 : 201 new uid v version 14", nil},
		{"a create of what is not removed", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 404; create a at 5 until 6 : 201 new uid v version 14", requests.Linearizable},
		{"a deletecollection beside the removal of the last finalizer", "create a holds f : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing at 4 until 7 : 200 version 12; deletecollection at 5 until 6 : 200 12", nil},
		{"two deletes beside the removal of the collector's finalizer", "create a : 201 version 11; delete a Orphan : 200 orphan version 12; patch a holds nothing at 4 until 9 : 200 version 12; delete a Background at 5 until 8; delete a Background at 6 until 7", requests.Linearizable},
	})
}
