package history_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// pod is an event of a pod with a node, or without one if scheduled is false.
func pod(kind, resourceVersion string, scheduled bool, grace ...int64) history.Event {
	return seenPod(seen(kind, "p", resourceVersion), scheduled, grace...)
}

// seenPod is an event with what is known of pods.
func seenPod(shown history.Event, scheduled bool, grace ...int64) history.Event {
	shown.Pod = &history.Pod{Scheduled: scheduled, Termination: 30}
	if len(grace) > 0 {
		shown.Object.Terminating = true
		shown.Pod.Grace, shown.Pod.Deadline = &grace[0], new(time.Unix(1000+grace[0], 0))
	}
	return shown
}

// afterGrace is a delete of the pod with gracePeriodSeconds.
func afterGrace(seconds int64) history.Request {
	request := deletedBy("p", "")
	request.Operation.Grace = &seconds
	return request
}

// refused is a delete that was refused because the pod is another one by then.
func refused(request history.Request) history.Request {
	request.Outcome.Code = http.StatusConflict
	return request
}

func TestPodsAreDeletedGracefully(t *testing.T) {
	later := pod(history.Modified, "4", true, 10)
	later.Pod.Deadline = new(time.Unix(2000, 0))
	expired := pod(history.Modified, "4", true, 0)
	expired.Pod.Deadline = new(time.Unix(1012, 0))
	for name, test := range map[string]struct {
		events   []history.Event
		requests []history.Request
		broken   *history.Property
	}{
		"by default": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 30)}, []history.Request{deletedBy("p", "")}, nil,
		},
		"sooner, and then at once": {
			[]history.Event{
				pod(history.Added, "2", true), pod(history.Modified, "3", true, 30), pod(history.Modified, "4", true, 5), pod(history.Deleted, "5", true, 5),
			}, []history.Request{deletedBy("p", ""), afterGrace(5), afterGrace(0)}, nil,
		},
		"by a delete that was refused after its first step": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 0)}, []history.Request{refused(afterGrace(0))}, nil,
		},
		"negative": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 1)}, []history.Request{afterGrace(-1)}, nil,
		},
		"without a node": {
			[]history.Event{pod(history.Added, "2", false), pod(history.Modified, "3", false, 0), pod(history.Deleted, "4", false, 0)},
			[]history.Request{deletedBy("p", "")}, nil,
		},
		"without a node, later": {
			[]history.Event{pod(history.Added, "2", false), pod(history.Modified, "3", false, 30)}, []history.Request{deletedBy("p", "")},
			history.GraceImmediate,
		},
		"later": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 5), pod(history.Modified, "4", true, 30)},
			[]history.Request{deletedBy("p", ""), afterGrace(5)}, history.GraceDecreases,
		},
		"until a later time": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 10), later}, []history.Request{afterGrace(10)},
			history.GraceDecreases,
		},
		"sooner, after the time has passed": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 10), expired},
			[]history.Request{afterGrace(10), afterGrace(0)}, history.GraceExpired,
		},
		"no longer": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 30), pod(history.Modified, "4", true)},
			[]history.Request{deletedBy("p", "")}, history.GraceDecreases,
		},
		"with a grace period that was not requested": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 30)}, []history.Request{afterGrace(5)},
			history.GraceRequested,
		},
		"at once, and no delete requested that": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 0)}, []history.Request{deletedBy("p", "")},
			history.GraceRequested,
		},
		"instead of one that was held": {
			[]history.Event{
				named("p", seenPod(seen(history.Modified, "x", "2", terminatingWith("a")), true, 30)), pod(history.Added, "3", true), pod(history.Deleted, "4", true),
			}, []history.Request{deletedBy("x", "")}, history.AtomicRemoval,
		},
		"too early": {
			[]history.Event{pod(history.Added, "2", true), pod(history.Modified, "3", true, 30), pod(history.Deleted, "4", true, 30)},
			[]history.Request{deletedBy("p", "")}, history.GraceNeverEarly,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole := graphOf("", test.events, test.requests...)
			whole.Graceful, whole.Streams[0].To = true, "9"
			broken := map[*history.Property]bool{}
			for _, finding := range whole.Check() {
				broken[finding.Property] = true
			}
			if test.broken == nil {
				g.Expect(broken).To(BeEmpty())
			} else {
				g.Expect(broken).To(HaveKey(test.broken))
				g.Expect(broken).To(Or(Not(HaveKey(history.GraceExpired)), HaveLen(1)), "this is about one property")
			}
		})
	}
}

// onNode is an event of a pod that a kubelet runs, after some seconds.
func onNode(kind, resourceVersion string, at time.Duration, running bool, grace ...int64) history.Event {
	shown := pod(kind, resourceVersion, true, grace...)
	shown.At, shown.Pod.Running = at, running
	return shown
}

// sentAt is a request after some seconds.
func sentAt(when time.Duration, request history.Request) history.Request {
	request.Call, request.Return = when, when
	return request
}

func TestKubeletsDeletePodsGracefully(t *testing.T) {
	started := onNode(history.Added, "2", 0, true)
	deleted := onNode(history.Modified, "3", time.Second, true, 30)
	for name, test := range map[string]struct {
		events   []history.Event
		requests []history.Request
		broken   *history.Property
	}{
		"after the grace period": {
			[]history.Event{started, deleted, onNode(history.Deleted, "4", 31*time.Second, false, 30)},
			[]history.Request{sentAt(time.Second, deletedBy("p", ""))}, nil,
		},
		"before its end": {
			[]history.Event{started, deleted, onNode(history.Deleted, "4", 20*time.Second, false, 30)},
			[]history.Request{sentAt(time.Second, deletedBy("p", ""))}, history.NodeFullGrace,
		},
		"before its end, while no container ran": {
			[]history.Event{
				onNode(history.Added, "2", 0, false), onNode(history.Modified, "3", time.Second, false, 30),
				onNode(history.Deleted, "4", 2*time.Second, false, 30),
			}, []history.Request{sentAt(time.Second, deletedBy("p", ""))}, nil,
		},
		"after a shorter one": {
			[]history.Event{
				started, deleted, onNode(history.Modified, "4", 3*time.Second, true, 5), onNode(history.Deleted, "5", 7*time.Second, false, 5),
			}, []history.Request{sentAt(time.Second, deletedBy("p", "")), sentAt(3*time.Second, afterGrace(5))}, nil,
		},
		"after a shorter one that had passed": {
			[]history.Event{
				started, deleted, onNode(history.Modified, "4", 9*time.Second, true, 5), onNode(history.Deleted, "5", 9*time.Second, false, 5),
			}, []history.Request{sentAt(time.Second, deletedBy("p", "")), sentAt(9*time.Second, afterGrace(5))}, nil,
		},
		"after one that is shorter than the time since the first delete": {
			[]history.Event{
				started, deleted, onNode(history.Modified, "4", 9*time.Second, true, 1), onNode(history.Deleted, "5", 10*time.Second, false, 1),
			}, []history.Request{sentAt(time.Second, deletedBy("p", "")), sentAt(9*time.Second, afterGrace(5))}, nil,
		},
		"before the end of a shorter one": {
			[]history.Event{
				started, deleted, onNode(history.Modified, "4", 3*time.Second, true, 5), onNode(history.Deleted, "5", 4*time.Second, false, 5),
			}, []history.Request{sentAt(time.Second, deletedBy("p", "")), sentAt(3*time.Second, afterGrace(5))}, history.NodeFullGrace,
		},
		"by nobody": {
			[]history.Event{started, onNode(history.Deleted, "3", 4*time.Second, true)}, nil, history.NodeFullGrace,
		},
		"by force": {
			[]history.Event{started, deleted, onNode(history.Deleted, "4", 2*time.Second, true, 0)},
			[]history.Request{sentAt(time.Second, deletedBy("p", "")), sentAt(2*time.Second, afterGrace(0))}, nil,
		},
		"with a grace period of 0 from the kubelet": {
			[]history.Event{
				started, deleted, onNode(history.Modified, "4", 31*time.Second, false, 0), onNode(history.Deleted, "5", 32*time.Second, false, 0),
			},
			[]history.Request{sentAt(time.Second, deletedBy("p", ""))}, nil,
		},
		"with a grace period of 0 from the kubelet, while a container runs": {
			[]history.Event{
				started, deleted, onNode(history.Modified, "4", 31*time.Second, true, 0), onNode(history.Deleted, "5", 32*time.Second, false, 0),
			},
			[]history.Request{sentAt(time.Second, deletedBy("p", ""))}, history.GraceRequested,
		},
		"never": {
			[]history.Event{started, deleted}, []history.Request{sentAt(time.Second, deletedBy("p", ""))}, history.NodeRemoved,
		},
		"after the first grace period, although it became shorter": {
			[]history.Event{
				onNode(history.Added, "2", 0, true), onNode(history.Modified, "3", time.Second, true, 100), onNode(history.Modified, "4", 3*time.Second, true, 5),
			}, []history.Request{sentAt(time.Second, afterGrace(100)), sentAt(3*time.Second, afterGrace(5))}, nil,
		},
		"late": {
			[]history.Event{started, deleted, onNode(history.Deleted, "4", 130*time.Second, false, 30)},
			[]history.Request{sentAt(time.Second, deletedBy("p", ""))}, history.NodeRemoved,
		},
		"not yet": {
			[]history.Event{started, onNode(history.Modified, "3", time.Second, true, 90)},
			[]history.Request{sentAt(time.Second, afterGrace(90))}, nil,
		},
		"not, as a finalizer holds it": {
			[]history.Event{started, named("p", seenPod(seen(history.Modified, "p", "3", terminatingWith("a")), true, 30))},
			[]history.Request{sentAt(time.Second, deletedBy("p", ""))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole := graphOf("", test.events, test.requests...)
			whole.Graceful, whole.Streams[0].To = true, "9"
			whole.Wait = &history.Wait{From: 60 * time.Second, To: 120 * time.Second}
			broken := map[*history.Property]bool{}
			for _, finding := range whole.Check() {
				broken[finding.Property] = true
			}
			if test.broken == nil {
				g.Expect(broken).To(BeEmpty())
			} else {
				g.Expect(broken).To(HaveLen(1))
				g.Expect(broken).To(HaveKey(test.broken))
			}
		})
	}
}
