package report

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestRequestsAreToldByTheObjectThatTheyAreAbout(t *testing.T) {
	now := time.Now()
	seen := func(second int, kind, namespace, name, uid string) v1alpha1.Observation {
		return v1alpha1.Observation{At: now.Add(time.Duration(second) * time.Second), Type: "ADDED", ObjectReference: v1alpha1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: types.UID("uid-" + uid)}}
	}
	objects := objectsOf(v1alpha1.Timeline{Events: []v1alpha1.Observation{
		seen(10, "ConfigMap", "ns", "owner", "old"),
		seen(20, "NetworkPolicy", "ns", "deny", "policy"),
		seen(30, "Namespace", "", "ns", "ns"),
		seen(40, "ConfigMap", "ns", "owner", "new"),
		seen(50, "Ingress", "ns", "web", "ingress"),
	}})
	for request, want := range map[string]string{
		"5 POST /api/v1/namespaces/ns/configmaps {\"metadata\":{\"name\":\"owner\"}}":                          "old",
		"15 DELETE /api/v1/namespaces/ns/configmaps/owner?propagationPolicy=Orphan":                            "old",
		"35 POST /api/v1/namespaces/ns/configmaps {\"metadata\":{\"name\":\"owner\"}}":                         "new",
		"45 GET /api/v1/namespaces/ns/configmaps/owner":                                                        "new",
		"45 DELETE /apis/networking.k8s.io/v1/namespaces/ns/networkpolicies/deny":                              "policy",
		"55 PATCH /apis/networking.k8s.io/v1/namespaces/ns/ingresses/web/status":                               "ingress",
		"35 DELETE /api/v1/namespaces/ns":                                                                      "ns",
		"35 PUT /api/v1/namespaces/ns/finalize":                                                                "ns",
		"45 DELETE /api/v1/namespaces/ns/configmaps?labelSelector=x":                                           "",
		"45 GET /api/v1/namespaces/other/configmaps/owner":                                                     "",
		"45 GET /api/v1/namespaces/ns/secrets/owner":                                                           "",
		"45 POST /api/v1/namespaces/ns/configmaps {\"metadata\":{\"ownerReferences\":[{\"name\":\"owner\"}]}}": "",
		"45 GET /version": "",
	} {
		t.Run(request, func(t *testing.T) {
			parts := append(strings.SplitN(request, " ", 4), "")
			after, err := time.ParseDuration(parts[0] + "s")
			if err != nil {
				t.Fatal(err)
			}
			got := concerned(objects, v1alpha1.Request{At: now.Add(after), Verb: parts[1], Path: parts[2], Body: parts[3]})
			name := ""
			if got >= 0 {
				name = strings.TrimPrefix(string(objects[got].uid), "uid-")
			}
			NewWithT(t).Expect(name).To(Equal(want))
		})
	}
}

func TestATraceIsSmallAndInOrder(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	trace := traceOf(v1alpha1.Timeline{
		Requests: []v1alpha1.Request{{At: now.Add(time.Second), Verb: "GET", Path: "/x\x1b", Body: "secret plans", Latency: 1234567}},
		Events:   []v1alpha1.Observation{{At: now.Add(2 * time.Second), ObjectReference: v1alpha1.ObjectReference{UID: "0123456789"}}, {At: now, ObjectReference: v1alpha1.ObjectReference{UID: "abc"}, Type: "ADDED"}},
	}, false)
	g.Expect(trace.Objects).To(Equal([]traceObject{{UID: "abc"}, {UID: "01234567"}}))
	g.Expect(trace.Requests).To(Equal([]traceRequest{{At: 1000, Took: 1.2, Object: -1, Verb: "GET", Path: `/x\x1b`}}))
	g.Expect([]float64{trace.Events[0].At, trace.Events[1].At}).To(Equal([]float64{0, 2000}))
	g.Expect(traceOf(v1alpha1.Timeline{}, true)).To(BeNil())
}
