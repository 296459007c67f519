package report

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Tally returns the counts of a run, in which deviations are failures if the run is strict.
func Tally(r v1alpha1.Report) v1alpha1.Counts {
	counts := maps.Clone(r.Counts)
	if r.Strict && counts[v1alpha1.Deviated] > 0 {
		counts[v1alpha1.Failed] += counts[v1alpha1.Deviated]
		delete(counts, v1alpha1.Deviated)
	}
	return counts
}

// namesInLine are the outcomes that have another name in the line of counts.
var namesInLine = map[v1alpha1.Outcome]string{v1alpha1.Outdated: "outdated known", v1alpha1.Known: "failed as known"}

// CountLine is the last line of a run, for people and programs. Its numbers add up to the catalog. It always contains passed, failed and
// skipped, and the rest only if there are any.
func CountLine(r v1alpha1.Report) string {
	var line []string
	counts := Tally(r)
	for _, outcome := range v1alpha1.Outcomes {
		always := outcome == v1alpha1.Passed || outcome == v1alpha1.Failed || outcome == v1alpha1.Skipped
		if always || counts[outcome] > 0 {
			line = append(line, fmt.Sprintf("%d %s", counts[outcome], cmp.Or(namesInLine[outcome], OutcomeName(outcome))))
		}
	}
	return strings.Join(line, ", ")
}
