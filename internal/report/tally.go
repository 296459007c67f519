package report

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Tally is what a run came to in five numbers of behaviors, which add up to the catalog.
type Tally struct{ Passed, Failed, Errored, Skipped, NotSelected int }

// TallyOf counts what an interruption left out among what errored. What deviates fails in a strict run only, and else counts with
// what was skipped.
func TallyOf(r v1alpha1.Report) Tally {
	count := r.Count()
	tally := Tally{
		Passed:      count[v1alpha1.Passed],
		Failed:      count[v1alpha1.Failed],
		Errored:     count[v1alpha1.Errored] + count[v1alpha1.Interrupted],
		Skipped:     count[v1alpha1.Skipped],
		NotSelected: count[v1alpha1.Filtered],
	}
	if r.Strict {
		tally.Failed += count[v1alpha1.Deviated]
	} else {
		tally.Skipped += count[v1alpha1.Deviated]
	}
	return tally
}

// String is the line by which programs know the end of a run. It names what errored and what was not selected only where there is any.
func (t Tally) String() string {
	line := fmt.Sprintf("%d passed, %d failed", t.Passed, t.Failed)
	if t.Errored > 0 {
		line += fmt.Sprintf(", %d errored", t.Errored)
	}
	line += fmt.Sprintf(", %d skipped", t.Skipped)
	if t.NotSelected > 0 {
		line += fmt.Sprintf(", %d not selected", t.NotSelected)
	}
	return line
}
