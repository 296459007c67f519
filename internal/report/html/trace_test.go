package html

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func TestTrace_Order(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	trace := traceOf(v1alpha1.Timeline{
		Requests: []v1alpha1.Request{{At: now.Add(time.Second), Verb: "GET", Path: "/x", Body: "secret plans", Latency: 1234567}},
		Events:   []v1alpha1.Observation{{At: now.Add(2 * time.Second), ObjectReference: v1alpha1.ObjectReference{UID: "0123456789"}}, {At: now, ObjectReference: v1alpha1.ObjectReference{UID: "abc"}, Type: "ADDED"}},
	}, false)
	g.Expect(trace.Objects).To(Equal([]traceObject{{UID: "abc"}, {UID: "01234567"}}))
	g.Expect(trace.Requests).To(Equal([]traceRequest{{At: 1000, Took: 1.2, Object: -1, Verb: "GET", Path: "/x"}}))
	g.Expect([]float64{trace.Events[0].At, trace.Events[1].At}).To(Equal([]float64{0, 2000}))
	g.Expect(traceOf(v1alpha1.Timeline{}, true)).To(BeNil())
}

func TestTrace_Reviews(t *testing.T) {
	g := NewWithT(t)
	reviews := traceOf(reporttest.Reviewed(), false).Reviews
	g.Expect(reviews).To(HaveLen(3))
	g.Expect(reviews[0]).To(Equal(traceReview{
		At: 1, Took: 1, Operation: "DELETE", By: "the run itself", Asked: []string{"gracePeriodSeconds 20"}, Allowed: true,
	}))
	g.Expect(reviews[2].Message).To(Equal("this one stays"))
}
