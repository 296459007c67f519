package report

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Tally is what a run came to in three numbers of behaviors.
type Tally struct{ Passed, Failed, Skipped int }

// TallyOf counts what was not tested for an error of the run, or for its end, among what failed. What deviates fails in a
// strict run only, and else counts with what was skipped.
func TallyOf(r v1alpha1.Report) Tally {
	count := r.Count()
	tally := Tally{
		Passed:  count[v1alpha1.Passed],
		Failed:  count[v1alpha1.Failed] + count[v1alpha1.Errored] + count[v1alpha1.Interrupted],
		Skipped: count[v1alpha1.Skipped] + count[v1alpha1.Filtered],
	}
	if r.Strict {
		tally.Failed += count[v1alpha1.Deviated]
	} else {
		tally.Skipped += count[v1alpha1.Deviated]
	}
	return tally
}

// String is the line by which programs know the end of a run.
func (t Tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.Passed, t.Failed, t.Skipped)
}
