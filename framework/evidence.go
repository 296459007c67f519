package framework

import (
	"encoding/json"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// evidenceEntry is the name under which a spec's evidence travels in Ginkgo's report.
const evidenceEntry = "evidence"

// Evidence is what a spec leaves in Ginkgo's report beside its outcome.
type Evidence struct {
	Timeline v1alpha1.Timeline `json:"timeline"`
	// Explanation says of each object that still exists why it does; only filled when the spec failed.
	Explanation []string `json:"explanation,omitempty"`
	// RunError is set when the spec could not be judged because the cluster or the way to it failed (throttled,
	// unavailable, connection lost): an error of the run, not of the behaviour.
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
