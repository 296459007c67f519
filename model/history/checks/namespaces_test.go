package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/namespaces"
)

func TestNamespaces(t *testing.T) {
	expectEach(t, func(h *history.History) {
		deletesByUID(h)
		h.Homes, h.Streams[0].To = map[string]string{}, "99"
		for _, name := range h.Names {
			h.Homes[name] = "ns"
		}
	}, []row{
		// A namespace goes with its objects.
		{"emptied and removed", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED x; DELETED ns", nil},
		{"never deleted", "ADDED ns; ADDED x", nil},
		{"never removed", "ADDED x; delete ns; MODIFIED ns terminating; DELETED x", namespaces.Completed},
		{"never emptied", "ADDED x; delete ns; MODIFIED ns terminating", namespaces.Completed},
		{"never removed, after a client has released an object", "ADDED x holds a; delete x; MODIFIED x terminating; patch x holds nothing; DELETED x; delete ns; MODIFIED ns terminating", namespaces.Completed},
		{"held by an object", "ADDED x holds a; delete ns; MODIFIED ns terminating", nil},
		{"held by one of two objects", "ADDED x holds a; ADDED y; delete ns; MODIFIED ns terminating; DELETED y", nil},
		{"held by its own finalizer", "ADDED x; delete ns; MODIFIED ns terminating holds a; DELETED x", nil},
		{"with an object whose changes were not seen", "ADDED x; delete ns; MODIFIED ns terminating; EXPIRED 9 x", nil},
		{"another namespace", "ADDED x; ADDED ns-other; DELETED ns-other", nil},
		{"an object of no client", "ADDED x; ADDED quiet; DELETED quiet", nil},

		// Nothing is in a namespace that is gone.
		{"an object survives", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED ns at 20; get x at 22 : 200", namespaces.Emptied},
		{"an object survives, as reads show", "ADDED x; delete ns at 10; MODIFIED ns terminating; get ns at 20 : 404; get x at 22 : 200", namespaces.Emptied},
		{"an object survives, as a read shows after the event", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED ns at 20; get x at 22 : 200; get ns at 30 : 404", namespaces.Emptied},
		{"an object survives, as the first of two events shows", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED ns at 20; get x at 22 : 200; DELETED ns", namespaces.Emptied},
		{"an object is read at the time of the removal", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED ns at 20; get x at 20 : 200", nil},
		{"an object is read from a cache", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED x; DELETED ns at 20; get x from 0 at 22 : 200", nil},
		{"an object is created after the removal", "ADDED x; delete ns at 10; MODIFIED ns terminating; DELETED x; DELETED ns at 20; create x at 22 : 201", namespaces.Emptied},

		// A terminating namespace is closed.
		{"creates are refused", "ADDED x; delete ns; MODIFIED ns terminating; create x : 403; DELETED x; DELETED ns; create x : 404; get x : 404", nil},
		{"a create is accepted before an event", "ADDED x; delete ns at 10 until 15; create x at 11 : 201; MODIFIED ns terminating at 11; DELETED x; DELETED ns", nil},
		{"a create is accepted after an event", "ADDED x; delete ns at 10 until 15; MODIFIED ns terminating at 11; create x at 12 : 201; DELETED x; DELETED ns", namespaces.Closed},
		{"a create is accepted after the first of two events", "ADDED x; delete ns at 10 : lost; MODIFIED ns terminating at 11; create x at 12 : 201; MODIFIED ns terminating; DELETED x; DELETED ns", namespaces.Closed},
		{"a create is accepted after the response", "ADDED x; delete ns at 10 until 11; create x at 12 : 201; DELETED x; DELETED ns", namespaces.Closed},
		{"a create is accepted after a response that was lost", "ADDED x; delete ns at 10 : lost; create x at 12 : 201; DELETED x; DELETED ns", nil},
		{"a create is accepted after a refused delete", "ADDED x; delete ns at 10 : 403; create x at 12 : 201", nil},
		{"a create is accepted after a read", "ADDED x; get ns at 10 : 200; create x at 12 : 201", nil},
		{"a create is accepted after another event", "ADDED x; ADDED ns; create x : 201", nil},
		{"a patch is accepted after an event", "ADDED x; delete ns; MODIFIED ns terminating; patch x : 200; DELETED x; DELETED ns", nil},

		// Objects stay until they or their namespace are deleted.
		{"a client deletes an object", "ADDED x; delete x; DELETED x", nil},
		{"a client may delete an object", "ADDED x; delete x : lost; DELETED x", nil},
		{"a client deletes an object at the time of its removal", "ADDED x; delete x at 5; DELETED x at 5", nil},
		{"a client deletes an object later", "ADDED x; DELETED x; delete x", namespaces.Kept},
		{"a client deletes another object", "ADDED x; ADDED y; delete y; DELETED y; DELETED x", namespaces.Kept},
		{"a client changes an object", "ADDED x; patch x uid x; DELETED x", namespaces.Kept},
		{"a client is refused to delete an object", "ADDED x; delete x : 403; DELETED x", namespaces.Kept},
		{"a client may delete the namespace", "ADDED x; delete ns : lost; DELETED x; DELETED ns", nil},
		{"a client deletes the namespace at the time of the removal", "ADDED x; DELETED x at 5; delete ns at 5; DELETED ns", nil},
		{"a client deletes the namespace twice", "ADDED x; delete ns; DELETED x; delete ns; DELETED ns", nil},
		{"a client deletes the namespace later", "ADDED x; DELETED x; delete ns; DELETED ns", namespaces.Kept},
		{"a client deletes the namespace later, of a terminating object", "ADDED x holds a; MODIFIED x terminating; delete ns; patch x holds nothing; DELETED x; DELETED ns", namespaces.Kept},
		{"a client is refused to delete the namespace", "ADDED x; delete ns : 403; DELETED x", namespaces.Kept},
		{"a client reads the namespace", "ADDED x; get ns : 200; DELETED x", namespaces.Kept},
		{"a client may have read the namespace", "ADDED x; get ns : lost; DELETED x", namespaces.Kept},
		{"an object is terminating when it is seen first", "ADDED x terminating holds a", namespaces.Kept},
		{"an object replaces one that was held", "ADDED x uid u holds a; delete x uid u; MODIFIED x terminating; patch x holds nothing; DELETED x; ADDED x uid v; DELETED x", history.AtomicRemoval},

		// Finalizers hold objects.
		{"a client releases an object", "ADDED x holds a; delete ns; MODIFIED x terminating; patch x holds nothing; DELETED x; DELETED ns", nil},
		{"a client releases an object by a patch of no change", "ADDED x holds a; delete ns; MODIFIED x terminating; patch x; DELETED x; DELETED ns", nil},
		{"a client may release an object", "ADDED x holds a; delete ns; MODIFIED x terminating; patch x holds nothing : lost; DELETED x; DELETED ns", nil},
		{"a client releases an object at the time of its removal", "ADDED x holds a; delete ns; MODIFIED x terminating; patch x holds nothing at 9; DELETED x at 9; DELETED ns", nil},
		{"a client releases an object later", "ADDED x holds a; delete ns; MODIFIED x terminating; DELETED x; patch x holds nothing; DELETED ns", namespaces.Held},
		{"a client releases another object", "ADDED x holds a; ADDED y holds a; delete ns; MODIFIED x terminating; patch y holds nothing; DELETED x; DELETED y; DELETED ns", namespaces.Held},
		{"a client changes something else", "ADDED x holds a; delete ns; MODIFIED x terminating; patch x value 2; DELETED x; DELETED ns", namespaces.Held},
		{"a client keeps a finalizer", "ADDED x holds a,b; delete ns; MODIFIED x terminating; patch x holds a; DELETED x; DELETED ns", namespaces.Held},
		{"a client reads an object", "ADDED x holds a; delete ns; MODIFIED x terminating; get x : 200; DELETED x; DELETED ns", namespaces.Held},
		{"a client is refused to release an object", "ADDED x holds a; delete ns; MODIFIED x terminating; patch x holds nothing : 403; DELETED x; DELETED ns", namespaces.Held},
		{"no client releases an object", "ADDED x holds a; delete ns; MODIFIED x terminating; DELETED x; DELETED ns", namespaces.Held},
		{"an object that replaces one that was held goes in spite of finalizers", "ADDED x uid u holds a; delete ns; MODIFIED x terminating; MODIFIED x holds nothing; DELETED x; ADDED x uid v holds a; DELETED x; DELETED ns", history.AtomicRemoval},
	})
}

func TestConcerns(t *testing.T) {
	whole := historyOf(t, "ADDED a; ADDED d of a; ADDED e of b")
	whole.Homes = map[string]string{"x": "n", "y": "n", "z": "m"}
	for pair, expected := range map[[2]string]bool{
		{"x", "x"}: true, {"x", "n"}: true, {"n", "y"}: true, {"x", "y"}: false, {"m", "x"}: false, // namespaces
		{"a", "d"}: true, {"d", "a"}: true, {"a", "b"}: false, {"a", "e"}: false, // owners
	} {
		NewWithT(t).Expect(whole.Concerns(pair[0], pair[1])).To(Equal(expected), "%v", pair)
	}
	whole.Workloads = []history.Event{
		{Name: "Deployment/a", Object: model.Object{UID: "1"}, Workload: &history.Workload{Group: "g"}},
		{Name: "ReplicaSet/b", Object: model.Object{UID: "2"}, Workload: &history.Workload{Controller: "1"}},
		{Name: "Pod/c", Object: model.Object{UID: "3"}, Workload: &history.Workload{Controller: "2"}},
		{Name: "Service/d", Object: model.Object{UID: "4"}, Workload: &history.Workload{Group: "g"}},
	}
	for pair, expected := range map[[2]string]bool{
		{"Deployment/a", "ReplicaSet/b"}: true, {"Pod/c", "ReplicaSet/b"}: true, {"Service/d", "Deployment/a"}: true, {"Service/d", "ReplicaSet/b"}: false,
	} {
		NewWithT(t).Expect(whole.Concerns(pair[0], pair[1])).To(Equal(expected), "%v", pair)
	}
	NewWithT(t).Expect(whole.IsNamespace("m")).To(BeTrue())
	NewWithT(t).Expect(whole.IsNamespace("x")).To(BeFalse())
}
