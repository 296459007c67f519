package report_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func after(seconds int) time.Time { return reporttest.Start.Add(time.Duration(seconds) * time.Second) }

func TestObjectsOf_Requests(t *testing.T) {
	seen := func(seconds int, kind, namespace, name, uid string) v1alpha1.Observation {
		return v1alpha1.Observation{At: after(seconds), Type: "ADDED", ObjectReference: v1alpha1.ObjectReference{
			Version: "v1", Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid),
		}}
	}
	events := []v1alpha1.Observation{
		seen(40, "Secret", "ns", "owner", "new"),
		seen(10, "Secret", "ns", "owner", "old"),
		seen(20, "Namespace", "", "ns", "ns"),
	}
	about := func(kind, namespace, name, uid string) *v1alpha1.ObjectReference {
		return &v1alpha1.ObjectReference{Version: "v1", Resource: "any", Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)}
	}
	for _, c := range []struct {
		what  string
		at    int
		about *v1alpha1.ObjectReference
		want  types.UID
	}{
		{"a create that succeeded, by uid", 35, about("Secret", "ns", "owner", "new"), "new"},
		{"the first of a name, by uid", 45, about("Secret", "ns", "owner", "old"), "old"},
		{"a create that did not succeed", 15, about("Secret", "ns", "owner", ""), "old"},
		{"a namesake", 45, about("Secret", "ns", "owner", ""), "new"},
		{"a create whose response was lost", 5, about("Secret", "ns", "owner", ""), "old"},
		{"a cluster-scoped object", 45, about("Namespace", "", "ns", ""), "ns"},
		{"what was not watched", 45, about("Secret", "ns", "owner", "other"), ""},
		{"another kind", 45, about("ConfigMap", "ns", "owner", ""), ""},
		{"another group", 45, &v1alpha1.ObjectReference{Group: "example.com", Kind: "Secret", Namespace: "ns", Name: "owner"}, ""},
		{"another namespace", 45, about("Secret", "other", "owner", ""), ""},
		{"a collection", 45, about("Secret", "ns", "", ""), ""},
		{"no object", 45, nil, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			g := NewWithT(t)
			objects, rest := report.ObjectsOf(v1alpha1.Timeline{Events: events, Requests: []v1alpha1.Request{{At: after(c.at), Object: c.about}}})
			var got types.UID
			for _, o := range objects {
				if len(o.Requests) > 0 {
					got = o.UID
				}
			}
			g.Expect(got).To(Equal(c.want))
			g.Expect(rest.Requests).To(HaveLen(map[bool]int{true: 1, false: 0}[c.want == ""]))
			g.Expect(objects[0].UID).To(Equal(types.UID("old")), "what was seen first comes first")
		})
	}
}

func TestTimeline_Polls(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	about := func(name string) *v1alpha1.ObjectReference {
		return &v1alpha1.ObjectReference{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}
	}
	var timeline v1alpha1.Timeline
	for i := range 50 { // two objects are polled in turn; one of them is watched, and changes after 30 s
		status := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[i < 40]
		for _, name := range []string{"seen", "unseen"} {
			timeline.Requests = append(timeline.Requests, v1alpha1.Request{
				At: start.Add(time.Duration(i) * time.Second), Verb: http.MethodGet, Path: "/" + name, Status: status, Latency: time.Duration(i) * time.Microsecond,
				Object: about(name),
			})
		}
	}
	timeline.Requests = append(timeline.Requests, v1alpha1.Request{
		At: start.Add(45*time.Second + 1), Verb: http.MethodDelete, Path: "/unseen", Status: http.StatusNotFound, Object: about("unseen"),
	})
	timeline.Events = []v1alpha1.Observation{{At: start, Type: "ADDED", ObjectReference: *about("seen")}, {At: start.Add(30 * time.Second), Type: "MODIFIED", ObjectReference: *about("seen")}}

	g.Expect(report.FailureDetails(v1alpha1.Result{Outcome: v1alpha1.Failed, Timeline: timeline})).To(Equal(`Timeline, in seconds since its first entry:
   +0.000s  GET /unseen -> 200 in 0s; repeated 39 times within 39s
   +0.000s  GET /seen -> 200 in 0s; repeated 29 times within 29s
   +0.000s  ADDED ConfigMap a/seen (uid )
  +30.000s  GET /seen -> 200 in 0s; repeated 9 times within 9s
  +30.000s  MODIFIED ConfigMap a/seen (uid )
  +40.000s  GET /unseen -> 404 in 0s; repeated 5 times within 5s
  +40.000s  GET /seen -> 404 in 0s; repeated 9 times within 9s
  +45.000s  DELETE /unseen -> 404 in 0s
  +46.000s  GET /unseen -> 404 in 0s; repeated 3 times within 3s
`))
}

func TestTimeline_Canary(t *testing.T) {
	g := NewWithT(t)
	canary := reporttest.Timeline("canary-owner", "canary")
	for i := range canary.Requests {
		canary.Requests[i].Object.Canary = true
	}
	for i := range canary.Events {
		canary.Events[i].Canary = true
	}
	canary.Events = canary.Events[:4] // the owner remains

	g.Expect(report.FailureDetails(v1alpha1.Result{Outcome: v1alpha1.Failed, Timeline: canary})).To(Equal(`Timeline, in seconds since its first entry:
   +0.000s  canary ConfigMap dc-k7d2m-1/canary-owner (uid 11111111-aaaa): still there
   +0.006s  canary ConfigMap dc-k7d2m-1/canary (uid 22222222-bbbb): deleted after 34ms
   +0.020s  PATCH /api/v1/namespaces/dc-k7d2m-1/configmaps/canary-owner -> 422 in 1ms: metadata.finalizers: Forbidden
   +0.030s  GET /api/v1/namespaces/dc-k7d2m-1/configmaps/canary-owner -> no response: EOF
`))
}

func TestTimeline_Reviews(t *testing.T) {
	NewWithT(t).Expect(report.FailureDetails(v1alpha1.Result{Outcome: v1alpha1.Failed, Timeline: reporttest.Reviewed()})).To(Equal(`Timeline, in seconds since its first entry:
   +0.000s  DELETE /api/v1/namespaces/dc-k7d2m-1/pods/pod -> 200 in 4ms
   +0.001s  webhook asked: DELETE Pod dc-k7d2m-1/pod (uid 33333333-cccc) by the run itself, gracePeriodSeconds 20 -> allowed
   +0.003s  MODIFIED Pod dc-k7d2m-1/pod (uid 33333333-cccc): deletionTimestamp 2026-03-04T05:06:07Z
   +2.000s  webhook asked: DELETE Pod dc-k7d2m-1/pod (uid 33333333-cccc) by system:node:a, gracePeriodSeconds 0, preconditions.uid 33333333-cccc, stored as terminating with deletionGracePeriodSeconds 20 -> allowed
   +2.100s  webhook asked: DELETE Pod dc-k7d2m-1/pod (uid 33333333-cccc) by system:node:a, gracePeriodSeconds 0, preconditions.uid 33333333-cccc, stored as terminating with deletionGracePeriodSeconds 0 -> denied: this one stays
`))
}
