package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/operators"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
)

// operates makes a history one of an operator that adds a finalizer, and creates a ConfigMap with an owner reference and a Secret without.
func operates(h *history.History) {
	deletesByUID(h)
	h.Streams[0].To = "99"
	if h.Operated == nil {
		h.Operated = &history.Operated{}
	}
	h.Operated.Finalizers, h.Operated.Kinds, h.Operated.Ordered = "op.io/f", map[string]int{"ConfigMap": 1, "Secret": 1}, true
}

const (
	// created is an object that the operator serves, and made are its children.
	created = "create x value 1; ADDED x value 1; MODIFIED x holds op.io/f; "
	made    = "CHILD ADDED ConfigMap/x-1 of x; CHILD ADDED Secret/x-2; "
	served  = created + made
	// ended is its end.
	ended = "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; CHILD DELETED ConfigMap/x-1; "
)

func TestOperator(t *testing.T) {
	expectEach(t, operates, []row{
		{"serves an object and releases it", served + "QUIET; " + ended + "QUIET", nil},
		{"does nothing at all, without a quiet moment", "create x value 1; ADDED x value 1", nil},
		{"changes of an object were not seen", created + "delete x; MODIFIED x terminating; EXPIRED 9 x; QUIET", nil},

		// Every object is served.
		{"does nothing for an object", "create x value 1; ADDED x value 1; QUIET", operators.Served},
		{"loses its finalizer", served + "MODIFIED x holds other.io/f; QUIET", operators.Served},
		{"creates no child", created + "QUIET", operators.Served},
		{"creates one of two children", created + "CHILD ADDED Secret/x-2; QUIET", operators.Served},
		{"creates a child after the moment", created + "CHILD ADDED Secret/x-2; QUIET; CHILD ADDED ConfigMap/x-1 of x", operators.Served},
		{"an object that was created after the moment", served + "QUIET; create y value 2; ADDED y value 2", nil},
		{"does nothing for a new object of a name", served + ended + "create x value 2; ADDED x uid y value 2; QUIET", operators.Served},
		{"serves a new object of a name", served + ended + "create x value 2; ADDED x uid y value 2; MODIFIED x holds op.io/f; " +
			"CHILD ADDED ConfigMap/x-3 of y; CHILD ADDED Secret/x-4; QUIET", nil},
		{"a terminating object needs nothing", "create x value 1 holds a; ADDED x value 1 holds a; delete x; MODIFIED x terminating; QUIET", nil},

		// Children that clients delete.
		{"creates a child again", served + "delete Secret/x-2; CHILD DELETED Secret/x-2; CHILD ADDED Secret/x-2 uid z; QUIET", nil},
		{"does not create a child again", served + "delete Secret/x-2; CHILD DELETED Secret/x-2; QUIET", operators.Restored},
		{"deletes a child by itself", served + "CHILD DELETED Secret/x-2; QUIET", operators.Served},
		{"loses the child of another object", served + "create y value 2; ADDED y value 2; MODIFIED y holds op.io/f; CHILD ADDED ConfigMap/y-1 of y; " +
			"CHILD ADDED Secret/y-2; delete Secret/y-2; CHILD DELETED Secret/x-2; QUIET", operators.Served},

		// The finalizer goes.
		{"keeps its finalizer", served + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; QUIET", operators.Released},
		{"removes its finalizer after the moment", served + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; QUIET; DELETED x; CHILD DELETED ConfigMap/x-1", operators.Released},
		{"removes its finalizer while another holds the object", "create x value 1 holds a; ADDED x value 1 holds a; MODIFIED x holds a,op.io/f; " + made +
			"delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; MODIFIED x holds a; QUIET", nil},
		{"waits for another finalizer", "create x value 1 holds a; ADDED x value 1 holds a; MODIFIED x holds a,op.io/f; " + made +
			"delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; QUIET", operators.Released},

		// Finalizers of others stay.
		{"a client removes its finalizer", "create x value 1 holds a; ADDED x value 1 holds a; patch x version 2 holds nothing; MODIFIED x holds nothing", nil},
		{"a client may have removed its finalizer", "create x value 1 holds a; ADDED x value 1 holds a; patch x version 2 holds nothing : lost; MODIFIED x holds nothing", nil},
		{"a client was refused to remove its finalizer", "create x value 1 holds a; ADDED x value 1 holds a; patch x version 2 holds nothing : 409; MODIFIED x holds nothing", operators.Finalizers},
		{"a client removed the finalizer of another version", "create x value 1 holds a; ADDED x value 1 holds a; patch x version 1 holds nothing; MODIFIED x holds nothing", operators.Finalizers},
		{"a client removed the finalizer of any version before", "create x value 1 holds a; ADDED x value 1 holds a; patch x holds nothing; MODIFIED x holds nothing", nil},
		{"a client removed the finalizer of any version later", "create x value 1 holds a; ADDED x value 1 holds a; MODIFIED x holds nothing at 3; patch x holds nothing at 4", operators.Finalizers},
		{"a client removed the finalizer of another object", "create x value 1 holds a; ADDED x value 1 holds a; patch y holds nothing; MODIFIED x holds nothing", operators.Finalizers},
		{"a client removed another finalizer", "create x value 1 holds a,b; ADDED x value 1 holds a,b; patch x holds a; MODIFIED x holds nothing", operators.Finalizers},
		{"a client has written no finalizers", "create x value 1 holds a; ADDED x value 1 holds a; patch x version 2 value 2; MODIFIED x holds nothing", operators.Finalizers},
		{"removes all finalizers", served + "MODIFIED x holds a,op.io/f; patch x version 6 holds a,op.io/f", operators.Finalizers},
		{"removes all finalizers of a terminating object", "create x value 1 holds a; ADDED x value 1 holds a; MODIFIED x holds a,op.io/f; delete x; MODIFIED x terminating; DELETED x", operators.Finalizers},
		{"brings a finalizer back", "create x value 1 holds a; ADDED x value 1 holds a; patch x version 2 holds nothing; MODIFIED x holds nothing; MODIFIED x holds a,op.io/f", operators.Finalizers},
		{"the server removes an object to which a client adds a finalizer", "create x value 1; ADDED x value 1; patch x version 2 holds a; MODIFIED x holds a; delete x; DELETED x", history.AtomicRemoval},
		{"a client removes the finalizer of an earlier version, and the server the object", "create x value 1 holds a; ADDED x value 1 holds a; delete x; MODIFIED x terminating; " +
			"MODIFIED x value 2; patch x version 3 holds nothing; DELETED x", history.AtomicRemoval},
		{"the server removes an object to which the operator adds its finalizer", created + "delete x; DELETED x; " + made + "CHILD DELETED ConfigMap/x-1; QUIET", history.AtomicRemoval},
		{"the server removes an object to which finalizers were added, and which was deleted again", "create x value 1; ADDED x value 1; delete x uid x until 9; " +
			"MODIFIED x holds op.io/f; MODIFIED x terminating; DELETED x; CHILD ADDED ConfigMap/x-1 of x; CHILD DELETED ConfigMap/x-1; QUIET", history.AtomicRemoval},
		{"a delete before marks the object", "create x value 1; ADDED x value 1; delete x uid x until 9 : 200 terminating; " +
			"MODIFIED x holds op.io/f; MODIFIED x terminating; DELETED x; CHILD ADDED ConfigMap/x-1 of x; CHILD DELETED ConfigMap/x-1; QUIET", operators.Stops},
		{"a delete before removes an earlier object of the name", "create x value 1; ADDED x value 1; delete x until 9; DELETED x; create x value 2; ADDED x uid y value 2; " +
			"MODIFIED x holds op.io/f; MODIFIED x terminating; DELETED x; CHILD ADDED ConfigMap/x-1 of y; CHILD DELETED ConfigMap/x-1; QUIET", operators.Stops},
		{"a child for an object that the server has lost comes when there is another", created + "delete x; DELETED x; create x value 2; ADDED x uid y value 2; CHILD ADDED Secret/x-2; " +
			"MODIFIED x holds op.io/f", history.AtomicRemoval},
		{"the garbage collector removes its finalizer", "create x value 1; ADDED x value 1; MODIFIED x orphan; DELETED x", nil},

		// Fields of others stay.
		{"a client changes the annotation", "create x value 1; ADDED x value 1; patch x value 2; MODIFIED x value 2", nil},
		{"the annotation is replaced by an earlier one", "create x value 1; ADDED x value 1; patch x value 2; MODIFIED x value 2; MODIFIED x value 1", operators.Fields},
		{"the annotation goes", "create x value 1; ADDED x value 1; MODIFIED x new", operators.Fields},
		{"the labels of the run go", "create x value 1; ADDED x value 1; DELETED x; get x : 200 stray version 3", operators.Fields},

		// Children go.
		{"the owned child stays", created + made + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; QUIET", operators.Children},
		{"the owned child is terminating", created + made + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; CHILD MODIFIED ConfigMap/x-1 terminating; QUIET", nil},
		{"the unowned child stays", created + made + "delete x; MODIFIED x terminating; DELETED x; CHILD DELETED ConfigMap/x-1; QUIET", operators.Children},
		{"the unowned child goes after the object", created + made + "delete x; MODIFIED x terminating; DELETED x; CHILD DELETED Secret/x-2; CHILD DELETED ConfigMap/x-1; QUIET", operators.Children},
		{"the unowned child goes after another holds the object", created + made + "MODIFIED x holds b.io/f,op.io/f; delete x; MODIFIED x terminating; MODIFIED x holds b.io/f; " +
			"CHILD DELETED Secret/x-2; DELETED x; CHILD DELETED ConfigMap/x-1; QUIET", operators.Children},
		{"orphaned children stay", created + made + "delete x Orphan; MODIFIED x terminating; CHILD MODIFIED ConfigMap/x-1 of nothing; DELETED x; QUIET", nil},
		{"a new object adopts orphaned children", served + "delete x Orphan; MODIFIED x terminating; CHILD MODIFIED ConfigMap/x-1 of nothing; DELETED x; " +
			"create x value 2; ADDED x uid y value 2; QUIET", operators.Served},
		{"a delete with policy Orphan was refused", created + made + "delete x Orphan : 409; delete x; MODIFIED x terminating; DELETED x; CHILD DELETED ConfigMap/x-1", operators.Children},
		{"a child keeps the owner of before", served + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; create x value 2; ADDED x uid y value 2; " +
			"MODIFIED x holds op.io/f; CHILD ADDED Secret/x-2 uid z; CHILD ADDED ConfigMap/x-3 uid w; QUIET", operators.Children},
		{"a child keeps the owner of before after an interruption", "interrupted; " + served + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; create x value 2; ADDED x uid y value 2; " +
			"MODIFIED x holds op.io/f; CHILD ADDED Secret/x-2 uid z; CHILD ADDED ConfigMap/x-3 uid w; QUIET", ownership.Recreated},
		{"the unowned child stays after an interruption", "interrupted; " + created + made + "delete x; MODIFIED x terminating; DELETED x; CHILD DELETED ConfigMap/x-1; QUIET", operators.Children},

		// Nothing comes back.
		{"a child is created after the release", served + ended + "CHILD ADDED ConfigMap/x-3 of x; CHILD DELETED ConfigMap/x-3; QUIET", operators.Stops},
		{"a child is created while another holds the object", created + "MODIFIED x holds b.io/f,op.io/f; " + made + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; MODIFIED x holds b.io/f; " +
			"CHILD ADDED Secret/x-2 uid z; CHILD DELETED Secret/x-2 uid z; DELETED x; CHILD DELETED ConfigMap/x-1; QUIET", operators.Stops},
		{"a child is created before the release", served + "delete x; MODIFIED x terminating; CHILD DELETED Secret/x-2; CHILD ADDED Secret/x-2 uid z; CHILD DELETED Secret/x-2 uid z; " +
			"DELETED x; CHILD DELETED ConfigMap/x-1; QUIET", nil},
		{"the object is created again", served + ended + "ADDED x uid y value 1; DELETED x", operators.Stops},
		{"the object may be created by a client", "create x value 1 : lost; ADDED x value 1", nil},
		{"a client was refused to create the object", "create x value 1 : 409; ADDED x value 1", operators.Stops},
		{"a client creates another object", "create y value 1; ADDED x value 1", operators.Stops},

		// The finalizer comes first.
		{"a child comes before the finalizer", "create x value 1; ADDED x value 1; " + made + "MODIFIED x holds op.io/f; QUIET", operators.FinalizerFirst},
		{"a child comes without a finalizer", "create x value 1; ADDED x value 1; CHILD ADDED ConfigMap/x-1 of x; delete x; DELETED x; CHILD DELETED ConfigMap/x-1", operators.FinalizerFirst},
		{"a child was there when the watch began", "create x value 1; ADDED x value 1; CHILD MODIFIED ConfigMap/x-1 of x; MODIFIED x holds op.io/f; CHILD ADDED Secret/x-2; QUIET", nil},
	})
}

func TestOperator_Namespaces(t *testing.T) {
	expectEach(t, func(h *history.History) {
		operates(h)
		h.Homes = map[string]string{"x": "ns"}
	}, []row{
		{"a namespace goes with its objects", served + "delete ns; MODIFIED ns terminating; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; CHILD DELETED ConfigMap/x-1; DELETED ns; QUIET", nil},
		{"an object stays", served + "delete ns; MODIFIED ns terminating; MODIFIED x terminating; CHILD DELETED Secret/x-2; CHILD DELETED ConfigMap/x-1; QUIET", operators.Namespace},
		{"a client holds the object", "create x value 1 holds a; ADDED x value 1 holds a; delete ns; MODIFIED ns terminating; MODIFIED x terminating; QUIET", nil},
		{"the namespace stays", served + "delete ns; MODIFIED ns terminating; MODIFIED x terminating; CHILD DELETED Secret/x-2; DELETED x; CHILD DELETED ConfigMap/x-1; QUIET", operators.Namespace},
		{"the namespace is not deleted", served + "ADDED ns; QUIET; " + ended + "QUIET", nil},
	})
}

func TestOperator_OtherOrders(t *testing.T) {
	for name, change := range map[string]func(*history.Operated){
		"children are in another store":  func(o *history.Operated) { o.Ordered = false },
		"the operator adds no finalizer": func(o *history.Operated) { o.Finalizers = "" },
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, "create x value 1; ADDED x value 1; "+made+"MODIFIED x holds op.io/f; QUIET")
			operates(h)
			change(h.Operated)
			NewWithT(t).Expect(checks.Violations(h)).To(BeEmpty())
		})
	}
}

func TestUnfinished(t *testing.T) {
	g := NewWithT(t)
	h := historyOf(t, served)
	operates(h)
	object := model.Object{UID: "x", Finalizers: "op.io/f"}
	g.Expect(operators.Unfinished(h, map[string]model.Object{"x": object})).To(BeEmpty())
	g.Expect(operators.Unfinished(h, nil)).To(HaveLen(2), "both children are left")
	object.Terminating = true
	g.Expect(operators.Unfinished(h, map[string]model.Object{"x": object})).To(HaveLen(1))
	g.Expect(h.Concerns("x", "Secret/x-2")).To(BeTrue())
	g.Expect(h.Concerns("x", history.Operator)).To(BeTrue())
	g.Expect(h.Concerns("y", "Secret/x-2")).To(BeFalse())
}
