package run

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

// specOf returns Ginkgo's report of a behavior that ended in a state.
func specOf(state types.SpecState, level v1alpha1.Level, failure types.Failure, evidence *specs.Evidence) types.SpecReport {
	spec := types.SpecReport{
		LeafNodeText:   "goes at once",
		LeafNodeLabels: []string{"sample.topic.name", string(level), "features:gc"},
		LeafNodeLocation: types.CodeLocation{
			FileName: "/somewhere/suites/sample/topic.go", LineNumber: 12,
		},
		State: state, Failure: failure, StartTime: time.UnixMilli(1), RunTime: 1500 * time.Millisecond,
	}
	spec.ReportEntries = types.ReportEntries{entryOf("a remark"), entryOf(nil), entryOf([]int{1})}
	if evidence != nil {
		evidence.AttachTo(&spec)
	}
	return spec
}

func entryOf(value any) types.ReportEntry {
	return types.ReportEntry{Name: "of somebody else", Value: types.WrapEntryValue(value)}
}

func TestResultOf(t *testing.T) {
	at := types.CodeLocation{FileName: "/somewhere/suites/sample/topic.go", LineNumber: 34}
	said := types.Failure{Message: "expected this, got that", Location: at}
	failed := &v1alpha1.Failure{Message: said.Message, Location: "suites/sample/topic.go:34"}
	interrupted := "interrupted while it ran"
	for _, test := range []struct {
		name    string
		spec    types.SpecReport
		outcome v1alpha1.Outcome
		reason  string
		failure *v1alpha1.Failure
	}{
		{"passed", specOf(types.SpecStatePassed, v1alpha1.Core, types.Failure{}, nil), v1alpha1.Passed, "", nil},
		{
			"skipped", specOf(types.SpecStateSkipped, v1alpha1.Core, types.Failure{Message: "the garbage collector did not act"}, nil),
			v1alpha1.Skipped, "the garbage collector did not act", nil,
		},
		{"pending", specOf(types.SpecStatePending, v1alpha1.Core, types.Failure{}, nil), v1alpha1.Skipped, "marked as pending", nil},
		{"failed", specOf(types.SpecStateFailed, v1alpha1.Core, said, nil), v1alpha1.Failed, "", failed},
		{"failed, extended", specOf(types.SpecStateFailed, v1alpha1.Extended, said, nil), v1alpha1.Failed, "", failed},
		{"failed, observed", specOf(types.SpecStateFailed, v1alpha1.Observed, said, nil), v1alpha1.Deviated, "", failed},
		{
			"failed, and why things are still there",
			specOf(types.SpecStateFailed, v1alpha1.Core, said, &specs.Evidence{Explanation: []string{"it is held"}}),
			v1alpha1.Failed, "",
			&v1alpha1.Failure{Message: said.Message, Location: "suites/sample/topic.go:34", Explanation: []string{"it is held"}},
		},
		{"took too long", specOf(types.SpecStateTimedout, v1alpha1.Core, said, nil), v1alpha1.Failed, "", failed},
		{
			"panicked",
			specOf(types.SpecStatePanicked, v1alpha1.Core, types.Failure{Message: "Test Panicked", ForwardedPanic: "index out of range", Location: at}, nil),
			v1alpha1.Failed, "", &v1alpha1.Failure{Message: "panic: index out of range", Location: "suites/sample/topic.go:34"},
		},
		{"interrupted", specOf(types.SpecStateInterrupted, v1alpha1.Core, said, nil), v1alpha1.Interrupted, interrupted, nil},
		{"aborted", specOf(types.SpecStateAborted, v1alpha1.Core, said, nil), v1alpha1.Interrupted, interrupted, nil},
		{
			"interrupted, so that the cluster could not be asked",
			specOf(types.SpecStateInterrupted, v1alpha1.Core, said, &specs.Evidence{RunError: "GET: context canceled"}),
			v1alpha1.Interrupted, interrupted, nil,
		},
		{
			"the connection to the cluster failed",
			specOf(types.SpecStateFailed, v1alpha1.Core, said, &specs.Evidence{RunError: "the watch on pods was lost"}),
			v1alpha1.Errored, "the watch on pods was lost", nil,
		},
		{
			"the connection to the cluster failed, observed",
			specOf(types.SpecStateFailed, v1alpha1.Observed, said, &specs.Evidence{RunError: "connection refused"}),
			v1alpha1.Errored, "connection refused", nil,
		},
		{
			"without a place of its own",
			specOf(types.SpecStateFailed, v1alpha1.Core, types.Failure{Message: "timed out", FailureNodeLocation: at}, nil),
			v1alpha1.Failed, "", &v1alpha1.Failure{Message: "timed out", Location: "suites/sample/topic.go:34"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			result := resultOf(test.spec)
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Failure).To(Equal(test.failure))
			g.Expect(result.ID).To(Equal("sample.topic.name"))
			g.Expect(result.Statement).To(Equal("goes at once"))
			g.Expect(result.Features).To(Equal([]v1alpha1.Feature{v1alpha1.GC}))
			g.Expect(result.Start).To(Equal(test.spec.StartTime))
			g.Expect(result.Seconds).To(Equal(1.5))
		})
	}
}

func TestResultOf_Timeline(t *testing.T) {
	timeline := v1alpha1.Timeline{Requests: []v1alpha1.Request{{Verb: "GET", Path: "/version", Status: 200}}}
	result := resultOf(specOf(types.SpecStatePassed, v1alpha1.Core, types.Failure{}, &specs.Evidence{Timeline: timeline}))
	NewWithT(t).Expect(result.Timeline).To(Equal(timeline))
}
