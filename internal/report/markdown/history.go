package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// markedReports is the maximum number of outcomes in a cell of a history; older ones are left out.
const markedReports = 30

// WriteHistory writes a history as Markdown, fit for a GitHub job summary: the conclusion, a table for each list, and the reports.
func WriteHistory(w io.Writer, h compare.History) error {
	h = visible.Value(h)
	sections := []string{"## Deletion conformance: history of " + fmt.Sprint(len(h.Reports)) + " reports\n\n" + h.Conclusion() + "\n"}
	for _, list := range h.Lists() {
		sections = append(sections, seriesSection(h, list))
	}
	if len(h.Slower) > 0 {
		var rows strings.Builder
		fmt.Fprintf(&rows, "### Slower (%d)\n\n| Duration | Cluster | Change |\n|---|---|---|\n", len(h.Slower))
		for _, slower := range h.Slower {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", prose(slower.Name(), inlineLimit), code(slower.Cluster), prose(slower.Change(), inlineLimit))
		}
		sections = append(sections, rows.String())
	}
	for _, remark := range h.Remarks() {
		sections = append(sections, prose(remark, inlineLimit)+"\n")
	}
	var rows strings.Builder
	rows.WriteString("### Reports\n\n| Number | Report |\n|---|---|\n")
	for i, origin := range h.Reports {
		fmt.Fprintf(&rows, "| %d | %s |\n", i+1, prose(origin.String(), inlineLimit))
	}
	if _, err := io.WriteString(w, strings.Join(append(sections, rows.String()), "\n")); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// seriesSection returns a list of behaviors as a table, shortened to the limit of a section.
func seriesSection(h compare.History, list compare.List) string {
	var rows strings.Builder
	fmt.Fprintf(&rows, "### %s (%d)\n\n| Behavior | Cluster | Outcomes | Change | Reason |\n|---|---|---|---|---|\n", list.Title, len(list.Series))
	for i, series := range list.Series {
		if rows.Len() > bytesOfSection {
			fmt.Fprintf(&rows, "\n%d more are not listed.\n", len(list.Series)-i)
			break
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", code(series.Behavior), code(series.Cluster), outcomeMarks(series.Outcomes),
			prose(h.Change(series), inlineLimit), prose(series.Reason, inlineLimit))
	}
	return rows.String()
}

// outcomeMarks returns the symbols of the newest outcomes, the oldest first; a dot where a report does not contain the behavior.
func outcomeMarks(outcomes []v1alpha1.Outcome) string {
	var shown strings.Builder
	if surplus := len(outcomes) - markedReports; surplus > 0 {
		outcomes = outcomes[surplus:]
		shown.WriteString("… ")
	}
	for _, outcome := range outcomes {
		mark, known := marks[outcome]
		if !known {
			mark = "·"
		}
		shown.WriteString(mark)
	}
	return shown.String()
}
