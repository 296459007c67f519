package specs

import (
	"encoding/json"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Evidence is what a spec adds to Ginkgo's report besides its outcome.
type Evidence struct {
	Timeline v1alpha1.Timeline `json:"timeline"`
	// Explanation describes why each remaining object still exists; only set when the spec failed.
	Explanation []string `json:"explanation,omitempty"`
	// Cause is what the API server did wrong, as far as the timeline shows it; only set when the spec failed.
	Cause string `json:"cause,omitempty"`
	// LostGarbageCollector describes the canary of a barrier that the garbage collector did not delete.
	LostGarbageCollector string `json:"lostGarbageCollector,omitempty"`
	// Unreleased describes the finalizer that a controller of the resource under test did not remove.
	Unreleased string `json:"unreleased,omitempty"`
	// SkipReason describes the admission policy, the quota or the webhook that kept the spec from running. The behavior is then skipped,
	// although the spec has failed.
	SkipReason string `json:"skipReason,omitempty"`
	// RunError is set when the spec could not be tested because the cluster or the connection failed (throttled, unavailable, connection
	// lost). The behavior is then errored.
	RunError string `json:"runError,omitempty"`
	// Kept is the label of the spec, and KeptIn the namespace of its worker, when its objects were kept because it failed.
	Kept   string `json:"kept,omitempty"`
	KeptIn string `json:"keptIn,omitempty"`
}

// String keeps Ginkgo's reporters from printing the whole evidence as JSON.
func (e Evidence) String() string {
	encoded, err := json.Marshal(e.Explanation)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// entryName is the name of the report entry.
const entryName = "evidence"

// Attach adds the evidence to Ginkgo's report of the current spec.
func (e Evidence) Attach() {
	ginkgo.AddReportEntry(entryName, e, ginkgo.ReportEntryVisibilityFailureOrVerbose)
}

// AttachTo adds the evidence to a report without one.
func (e Evidence) AttachTo(spec *types.SpecReport) {
	spec.ReportEntries = append(spec.ReportEntries, types.ReportEntry{Name: entryName, Value: types.WrapEntryValue(e)})
}

// Detached separates the evidence from a report, because Ginkgo encodes an entry twice, once as text.
func Detached(spec types.SpecReport) (types.SpecReport, Evidence) {
	evidence := EvidenceOf(spec)
	spec.ReportEntries = slices.DeleteFunc(slices.Clone(spec.ReportEntries), func(entry types.ReportEntry) bool { return entry.Name == entryName })
	return spec, evidence
}

// EvidenceOf returns the evidence in a report.
func EvidenceOf(spec types.SpecReport) Evidence {
	for _, entry := range spec.ReportEntries {
		if evidence, ok := entry.Value.GetRawValue().(Evidence); ok {
			return evidence
		}
	}
	return Evidence{}
}
