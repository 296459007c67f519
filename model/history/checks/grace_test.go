package checks_test

import (
	"testing"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/grace"
)

func graceful(h *history.History) {
	deletesByUID(h)
	h.Graceful, h.Streams[0].To = true, "99"
}

func TestGrace(t *testing.T) {
	expectEach(t, graceful, []row{
		// Which grace period a pod gets.
		{"by default", "ADDED p; delete p; MODIFIED p grace 30", nil},
		{"sooner, and then at once", "ADDED p; delete p; MODIFIED p grace 30; delete p grace 5; MODIFIED p grace 5; delete p grace 0; DELETED p", nil},
		{"negative", "ADDED p; delete p grace -1; MODIFIED p grace 1", nil},
		{"lost", "ADDED p; delete p : lost; MODIFIED p grace 30", nil},
		{"refused after the first step", "ADDED p; delete p grace 0 : 409; MODIFIED p grace 0", nil},
		{"refused", "ADDED p; delete p : 403; MODIFIED p grace 30", grace.Requested},
		{"not requested", "ADDED p; delete p grace 5; MODIFIED p grace 30", grace.Requested},
		{"not requested of this pod", "ADDED p; ADDED q; delete q; MODIFIED p grace 30", grace.Requested},
		{"not requested by a delete", "ADDED p; patch p uid p; MODIFIED p grace 30", grace.Requested},
		{"not requested of any pod", "ADDED p; delete gone; delete p; MODIFIED p grace 30", nil},
		{"at once, and not requested", "ADDED p; delete p; MODIFIED p grace 0", grace.Requested},
		{"cut to 1 when it has passed", "ADDED p; delete p at 0; MODIFIED p grace 30; delete p grace 5 at 9; MODIFIED p grace 1", nil},
		{"cut to 1 when it passes", "ADDED p; delete p at 0; MODIFIED p grace 30; delete p grace 5 at 4; MODIFIED p grace 1", grace.Requested},
		{"cut to 1 before it has passed", "ADDED p; delete p at 0; MODIFIED p grace 30; delete p grace 20 at 9; MODIFIED p grace 1", grace.Requested},
		{"cut to 2", "ADDED p; delete p at 0; MODIFIED p grace 30; delete p grace 5 at 9; MODIFIED p grace 2", grace.Requested},
		{"1 instead of 0", "ADDED p; delete p at 0; MODIFIED p grace 30; delete p grace 0 at 9; MODIFIED p grace 1", grace.Requested},

		// A pod without a node.
		{"without a node", "ADDED p unscheduled; delete p; MODIFIED p grace 0; DELETED p", nil},
		{"without a node, later", "ADDED p unscheduled; delete p; MODIFIED p grace 30", grace.Immediate},

		// How a grace period changes.
		{"longer", "ADDED p; delete p grace 5; MODIFIED p grace 5; delete p; MODIFIED p grace 30", grace.Decreases},
		{"longer until the same time", "ADDED p; delete p grace 5; MODIFIED p grace 5; delete p; MODIFIED p grace 30 deadline 5", grace.Decreases},
		{"the same until a later time", "ADDED p; delete p grace 10; MODIFIED p grace 10; MODIFIED p deadline 500", grace.Decreases},
		{"1 until a later time", "ADDED p; delete p grace 1; MODIFIED p grace 1; MODIFIED p deadline 500", grace.Decreases},
		{"shorter until a later time", "ADDED p; delete p grace 10; MODIFIED p grace 10; delete p grace 5; MODIFIED p grace 5 deadline 500", grace.Decreases},
		{"none", "ADDED p; delete p; MODIFIED p grace 30; MODIFIED p undeleted", grace.Decreases},
		{"0 until a later time, as it has passed", "ADDED p; delete p grace 10; MODIFIED p grace 10; delete p grace 0; MODIFIED p grace 0 deadline 12", grace.Expired},
		{"1 until a later time, as it has passed", "ADDED p; delete p grace 10; MODIFIED p grace 10; delete p grace 1; MODIFIED p grace 1 deadline 12", grace.Expired},
		{"0 instead of 5, as it has passed", "ADDED p; delete p grace 10; MODIFIED p grace 10; delete p grace 5; MODIFIED p grace 0 deadline 12", grace.Expired},

		// Why a pod goes.
		{"removed early", "ADDED p; delete p; MODIFIED p grace 30; DELETED p", grace.NeverEarly},
		{"removed before the pod garbage collector acts", "ADDED p at 0; DELETED p at 29", grace.NeverEarly},
		{"removed by the pod garbage collector", "ADDED p at 0; DELETED p at 30", nil},
		{"removed instead of one that was held", "ADDED p uid x; delete p uid x; MODIFIED p grace 30 holds a; delete p uid x grace 0; MODIFIED p holds nothing; DELETED p; ADDED p uid y undeleted; DELETED p", history.AtomicRemoval},
		{"removed after one that was not held", "ADDED p uid x; delete p uid x; MODIFIED p grace 30; delete p uid x grace 0; DELETED p; ADDED p uid y undeleted; DELETED p", grace.NeverEarly},
		{"removed after one that was held before its deletion", "ADDED p uid x holds a; MODIFIED p holds nothing; delete p uid x grace 0; DELETED p; ADDED p uid y; DELETED p", grace.NeverEarly},

		// Whose events and responses count.
		{"a delete shows what was not stored", "ADDED p; delete p : 200 version 2 terminating holds a", nil},
		{"a get shows what was not stored", "ADDED p; get p : 200 version 2 value 9", history.SameVersion},
		{"as another watch shows again", "ADDED p; delete p; MODIFIED p grace 30; OTHER 1; ADDED p version 2 undeleted; MODIFIED p version 3 grace 30", nil},
		{"a pod of no client", "ADDED p; ADDED quiet; DELETED quiet", nil},
	})
}

func TestGrace_OtherScenario(t *testing.T) {
	expectEach(t, func(h *history.History) { h.Names, h.Graceful = nil, false }, []row{
		{"their grace periods are not checked", "ADDED p; DELETED p", nil},
	})
}

func TestGrace_Nodes(t *testing.T) {
	expectEach(t, func(h *history.History) {
		graceful(h)
		h.Wait = &history.Wait{From: 60 * time.Second, To: 120 * time.Second}
	}, []row{
		// The grace period passes first.
		{"removed at its end", "ADDED p running; delete p at 1; MODIFIED p grace 30; DELETED p at 31", nil},
		{"removed at its end, rounded", "ADDED p running; delete p at 1; MODIFIED p grace 30; DELETED p at 30", nil},
		{"removed before its end", "ADDED p running; delete p at 1; MODIFIED p grace 30; DELETED p at 29.9", grace.FullGrace},
		{"removed before its end, as no container runs", "ADDED p; delete p at 1; MODIFIED p grace 30; DELETED p at 2", nil},
		{"removed before its end, as the container ended", "ADDED p running; delete p at 1; MODIFIED p grace 30; MODIFIED p stopped; DELETED p at 5", grace.FullGrace},
		{"removed before its end, and seen first while terminating", "delete p at 0; ADDED p running grace 30; DELETED p at 2", nil},
		{"removed after a shorter one", "ADDED p running; delete p at 1; MODIFIED p grace 30; delete p grace 5 at 3; MODIFIED p grace 5; DELETED p at 7", nil},
		{"removed before a shorter one", "ADDED p running; delete p at 1; MODIFIED p grace 30; delete p grace 5 at 3; MODIFIED p grace 5; DELETED p at 4.5", grace.FullGrace},
		{"removed before a shorter one is requested", "ADDED p running; delete p at 1; MODIFIED p grace 30; DELETED p at 7; delete p grace 5 at 9 : lost", grace.FullGrace},
		{"removed when a shorter one has passed", "ADDED p running; delete p at 1; MODIFIED p grace 30; delete p grace 5 at 9; MODIFIED p grace 5; DELETED p at 9", nil},
		{"removed after a shorter one that a longer one follows", "ADDED p running; delete p grace 5 at 1; MODIFIED p grace 5; delete p at 3; DELETED p at 7", nil},
		{"removed after 1, to which one was cut", "ADDED p running; delete p at 1; MODIFIED p grace 30; delete p grace 5 at 9; MODIFIED p grace 1; DELETED p at 10", nil},
		{"removed by force", "ADDED p running; delete p at 1; MODIFIED p grace 30; delete p grace 0 at 2; MODIFIED p grace 0; DELETED p", nil},
		{"removed by no client", "ADDED p running; DELETED p at 4", grace.FullGrace},
		{"removed after a delete that was refused", "ADDED p running; delete p at 1 : 403; delete p at 20; MODIFIED p grace 30; DELETED p at 32", grace.FullGrace},
		{"0 by the kubelet", "ADDED p running; delete p at 1; MODIFIED p grace 30; MODIFIED p stopped grace 0 at 31; DELETED p at 32", nil},
		{"0 by the kubelet, while a container runs", "ADDED p running; delete p at 1; MODIFIED p grace 30; MODIFIED p grace 0 at 31; DELETED p at 32", grace.Requested},
		{"5 by no client, as no container runs", "ADDED p; delete p at 1; MODIFIED p grace 5; DELETED p at 32", grace.Requested},
		{"5 by no client, long after the start", "ADDED p; delete p at 50; MODIFIED p grace 5; DELETED p at 90", grace.Requested},

		// Then the kubelet removes the pod.
		{"never removed", "ADDED p running; delete p at 1; MODIFIED p grace 30", grace.Removed},
		{"never removed, and seen first while terminating", "delete p at 0; ADDED p running grace 30", grace.Removed},
		{"removed at the end of the wait", "ADDED p running; delete p at 1; MODIFIED p grace 30; DELETED p at 120", nil},
		{"removed late", "ADDED p running; delete p at 1; MODIFIED p grace 30; DELETED p at 130", grace.Removed},
		{"expired in the second half of the wait", "ADDED p running; delete p grace 80 at 9; MODIFIED p grace 80 at 10", nil},
		{"expired in the first half of the wait", "ADDED p running; delete p grace 79 at 9; MODIFIED p grace 79 at 10", grace.Removed},
		{"shorter while the kubelet waits for the first", "ADDED p running; delete p grace 100 at 1; MODIFIED p grace 100; delete p grace 5; MODIFIED p grace 5", nil},
		{"held by a finalizer", "ADDED p running; delete p at 1; MODIFIED p grace 30 holds a", nil},
		{"held by a finalizer until late", "ADDED p running; delete p at 1; MODIFIED p grace 30 holds a; MODIFIED p holds nothing at 100", nil},
	})
}
