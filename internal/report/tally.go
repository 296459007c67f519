package report

import (
	"fmt"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Tally is the result of a run as numbers of behaviors, which add up to the catalog.
type Tally struct{ Passed, Failed, OutdatedKnown, Known, Deviated, Errored, Skipped, NotSelected int }

// TallyOf counts interrupted behaviors as errored, and deviations in a strict run as failed.
func TallyOf(r v1alpha1.Report) Tally {
	count := r.Count()
	tally := Tally{
		Passed:        count[v1alpha1.Passed],
		Failed:        count[v1alpha1.Failed],
		OutdatedKnown: count[v1alpha1.Outdated],
		Known:         count[v1alpha1.Known],
		Deviated:      count[v1alpha1.Deviated],
		Errored:       count[v1alpha1.Errored] + count[v1alpha1.Interrupted],
		Skipped:       count[v1alpha1.Skipped],
		NotSelected:   count[v1alpha1.Filtered],
	}
	if r.Strict {
		tally.Failed, tally.Deviated = tally.Failed+tally.Deviated, 0
	}
	return tally
}

// String is the last line of a run for programs. It always contains passed, failed and skipped, and the rest only if there are any.
func (t Tally) String() string {
	var line []string
	for _, part := range []struct {
		count  int
		always bool
		name   string
	}{
		{t.Passed, true, "passed"},
		{t.Failed, true, "failed"},
		{t.OutdatedKnown, false, "outdated known"},
		{t.Known, false, "failed as known"},
		{t.Deviated, false, "deviated"},
		{t.Errored, false, "errored"},
		{t.Skipped, true, "skipped"},
		{t.NotSelected, false, "not selected"},
	} {
		if part.always || part.count > 0 {
			line = append(line, fmt.Sprintf("%d %s", part.count, part.name))
		}
	}
	return strings.Join(line, ", ")
}
