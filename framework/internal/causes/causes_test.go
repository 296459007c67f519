package causes

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

const prefix = "example.com"

// moment is a time of a timeline, in seconds.
func moment(second int) time.Time { return time.Unix(int64(second), 0) }

// sent is an accepted request about an object, or about the collection if the uid is empty.
func sent(second int, verb, uid, query, body string) v1alpha1.Request {
	return v1alpha1.Request{
		At: moment(second), Verb: verb, Path: "/apis/coordination.k8s.io/v1/namespaces/n/leases?" + query, Body: body, Status: 200,
		Object: &v1alpha1.ObjectReference{Group: "coordination.k8s.io", Kind: "Lease", Namespace: "n", Name: uid, UID: types.UID(uid)},
	}
}

// event is an event of an object, whose deletion has begun if the type has a star.
func event(second int, kind, uid string, finalizers ...string) v1alpha1.Observation {
	observed := v1alpha1.Observation{
		At: moment(second), Type: strings.TrimSuffix(kind, "*"), Finalizers: finalizers,
		ObjectReference: v1alpha1.ObjectReference{Group: "coordination.k8s.io", Kind: "Lease", Namespace: "n", Name: uid, UID: types.UID(uid)},
	}
	if kind != observed.Type {
		observed.DeletionTimestamp = &metav1.Time{Time: moment(second)}
	}
	return observed
}

func TestOf(t *testing.T) {
	const held = `{"metadata":{"finalizers":["example.com/hold"]}}`
	const owned = `{"metadata":{"ownerReferences":[{"uid":"o"}]}}`
	type requests = []v1alpha1.Request
	type events = []v1alpha1.Observation
	for name, test := range map[string]struct {
		requests requests
		events   events
		want     string
	}{
		"a created object has no finalizers": {requests{sent(1, "POST", "a", "", held)}, events{event(2, "ADDED", "a")}, FinalizersNotStored},
		"an updated object gets none": {
			requests{sent(1, "POST", "a", "", `{}`), sent(3, "PUT", "a", "", held)}, events{event(2, "ADDED", "a"), event(4, "MODIFIED", "a")}, FinalizersNotStored,
		},
		"finalizers of others may go": {
			requests{sent(1, "POST", "a", "", `{"metadata":{"finalizers":["other.com/hold"]}}`)}, events{event(2, "ADDED", "a")}, "",
		},
		"a status write has no finalizers": {
			requests{func() v1alpha1.Request { r := sent(1, "PUT", "a", "", held); r.Subresource = "status"; return r }()}, events{event(2, "MODIFIED", "a")}, "",
		},
		"a created object has no owners": {requests{sent(1, "POST", "a", "", owned)}, events{event(2, "ADDED", "a")}, OwnersNotStored},
		"a held object goes": {
			requests{sent(1, "POST", "a", "", held), sent(3, "DELETE", "a", "", "")},
			events{event(2, "ADDED", "a", "example.com/hold"), event(4, "DELETED", "a", "example.com/hold")}, RemovedWhileHeld,
		},
		"a held object is released": {
			requests{sent(1, "POST", "a", "", held), sent(3, "DELETE", "a", "", ""), sent(5, "PATCH", "a", "", `{"metadata":{"finalizers":null}}`)},
			events{event(2, "ADDED", "a", "example.com/hold"), event(4, "MODIFIED*", "a", "example.com/hold"), event(6, "DELETED*", "a", "example.com/hold")}, "",
		},
		"a dry-run deletes": {
			requests{sent(1, "POST", "a", "", `{}`), sent(3, "DELETE", "a", "", `{"dryRun":["All"]}`)},
			events{event(2, "ADDED", "a"), event(4, "DELETED", "a")}, DryRunIgnored,
		},
		"a dry-run of the collection deletes": {
			requests{sent(1, "POST", "a", "", `{}`), sent(3, "DELETE", "", "dryRun=All", "")},
			events{event(2, "ADDED", "a"), event(4, "DELETED", "a")}, DryRunIgnored,
		},
		"a dry-run releases": {
			requests{sent(1, "POST", "a", "", held), sent(3, "DELETE", "a", "", ""), sent(5, "PATCH", "a", "dryRun=All", `{"metadata":{"finalizers":null}}`)},
			events{event(2, "ADDED", "a", "example.com/hold"), event(4, "MODIFIED*", "a", "example.com/hold"), event(6, "DELETED*", "a", "example.com/hold")}, DryRunIgnored,
		},
		"a delete after a dry-run": {
			requests{sent(1, "POST", "a", "", `{}`), sent(3, "DELETE", "a", "", `{"dryRun":["All"]}`), sent(4, "DELETE", "a", "", "")},
			events{event(2, "ADDED", "a"), event(5, "DELETED", "a")}, "",
		},
		"a collection stays": {
			requests{sent(1, "POST", "a", "", `{}`), sent(3, "DELETE", "", "", "")}, events{event(2, "ADDED", "a")}, CollectionIgnored,
		},
		"a part of a collection stays": {
			requests{sent(3, "DELETE", "", "labelSelector=a", "")}, events{event(1, "ADDED", "a"), event(2, "ADDED", "b"), event(4, "DELETED", "b")}, "",
		},
		"another uid is accepted": {
			requests{sent(3, "DELETE", "a", "", `{"preconditions":{"uid":"b"}}`)}, events{event(1, "ADDED", "a"), event(4, "DELETED", "a")}, UIDIgnored,
		},
		"the uid of the object": {
			requests{sent(3, "DELETE", "a", "", `{"preconditions":{"uid":"a"}}`)}, events{event(1, "ADDED", "a"), event(4, "DELETED", "a")}, "",
		},
		"a policy is not shown": {
			requests{sent(3, "DELETE", "a", "propagationPolicy=Orphan", "")}, events{event(1, "ADDED", "a"), event(4, "DELETED", "a")}, PolicyIgnored,
		},
		"a policy is shown": {
			requests{sent(3, "DELETE", "a", "", `{"propagationPolicy":"Orphan"}`)},
			events{event(1, "ADDED", "a"), event(4, "MODIFIED*", "a", "orphan"), event(5, "DELETED*", "a", "orphan")}, "",
		},
		"the last fault counts": {
			requests{sent(1, "POST", "a", "", held), sent(2, "POST", "b", "", `{}`), sent(4, "DELETE", "b", "dryRun=All", "")},
			events{event(2, "ADDED", "a"), event(3, "ADDED", "b"), event(5, "DELETED", "b")}, DryRunIgnored,
		},
		"finalizers of a policy are finalizers": {
			requests{sent(1, "POST", "a", "", held), sent(3, "DELETE", "a", "propagationPolicy=Foreground", "")},
			events{event(2, "ADDED", "a"), event(4, "DELETED", "a")}, FinalizersNotStored,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Of(v1alpha1.Timeline{Requests: test.requests, Events: test.events}, prefix)).To(Equal(test.want))
		})
	}
}
