package specs

import (
	"encoding/json"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Evidence is what a spec leaves in Ginkgo's report beside its outcome.
type Evidence struct {
	Timeline v1alpha1.Timeline `json:"timeline"`
	// Explanation says of each object that still exists why it does; only filled when the spec failed.
	Explanation []string `json:"explanation,omitempty"`
	// LostGarbageCollector is set when the garbage collector left a barrier's canary, and says which.
	LostGarbageCollector string `json:"lostGarbageCollector,omitempty"`
	// Prevented is set when the environment kept the spec from running, and says who refused or changed what: an admission policy, a
	// quota, a webhook. The behavior is skipped with this reason, even though the spec has failed.
	Prevented string `json:"prevented,omitempty"`
	// RunError is set when the spec could not be tested because the cluster or the way to it failed (throttled,
	// unavailable, connection lost): an error of the run, not of the behavior.
	RunError string `json:"runError,omitempty"`
}

// String keeps Ginkgo's own reporters from printing a page of JSON: they show this instead.
func (e Evidence) String() string {
	encoded, err := json.Marshal(e.Explanation)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// entryName is what the evidence is called in Ginkgo's report.
const entryName = "evidence"

// Attach leaves the evidence in Ginkgo's report of the spec that runs.
func (e Evidence) Attach() {
	ginkgo.AddReportEntry(entryName, e, ginkgo.ReportEntryVisibilityFailureOrVerbose)
}

// AttachTo leaves the evidence in a report that came without it.
func (e Evidence) AttachTo(spec *types.SpecReport) {
	spec.ReportEntries = append(spec.ReportEntries, types.ReportEntry{Name: entryName, Value: types.WrapEntryValue(e)})
}

// Detached is a report without the evidence, and the evidence: Ginkgo's encoding of an entry has it twice, once as text.
func Detached(spec types.SpecReport) (types.SpecReport, Evidence) {
	evidence := EvidenceOf(spec)
	spec.ReportEntries = slices.DeleteFunc(slices.Clone(spec.ReportEntries), func(entry types.ReportEntry) bool { return entry.Name == entryName })
	return spec, evidence
}

// EvidenceOf is what a spec left in Ginkgo's report, or what was attached to it.
func EvidenceOf(spec types.SpecReport) Evidence {
	for _, entry := range spec.ReportEntries {
		if evidence, is := entry.Value.GetRawValue().(Evidence); is {
			return evidence
		}
	}
	return Evidence{}
}
