package compare

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// List is a list of a history with its title.
type List struct {
	Title  string
	Series []Series
}

// Lists returns the lists of behaviors, the most important first, without empty ones.
func (h History) Lists() []List {
	var lists []List
	for _, list := range []List{
		{"Failing", h.Failing}, {"Outdated known failures", h.Outdated}, {"Passing again", h.Fixed}, {"No longer tested", h.Lost}, {"Newly tested", h.NewlyTested},
	} {
		if len(list.Series) > 0 {
			lists = append(lists, list)
		}
	}
	return lists
}

// Write writes a history for a terminal: the reports, and then the most important changes first, one a line.
func Write(w io.Writer, h History) error {
	var text strings.Builder
	for i, origin := range h.Reports {
		fmt.Fprintf(&text, "%d: %s\n", i+1, origin)
	}
	text.WriteString("\n")
	for _, list := range h.Lists() {
		fmt.Fprintf(&text, "%s (%d)\n", list.Title, len(list.Series))
		for _, series := range list.Series {
			text.WriteString(line(series.Behavior, series.Cluster, h.Change(series), series.Reason))
		}
		text.WriteString("\n")
	}
	if len(h.Slower) > 0 {
		fmt.Fprintf(&text, "Slower (%d)\n", len(h.Slower))
		for _, slower := range h.Slower {
			text.WriteString(line(slower.Name(), slower.Cluster, slower.Change(), ""))
		}
		text.WriteString("\n")
	}
	for _, remark := range h.Remarks() {
		text.WriteString(report.OneLine(remark, lineLimit) + "\n")
	}
	text.WriteString(h.Conclusion() + "\n")
	if _, err := io.WriteString(visible.NewLog(w), text.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

func line(name, cluster, change, reason string) string {
	text := fmt.Sprintf("  %s on %s: %s", report.OneLine(name, lineLimit), report.OneLine(cluster, lineLimit), report.OneLine(change, lineLimit))
	if reason != "" {
		text += ": " + report.OneLine(reason, lineLimit)
	}
	return text + "\n"
}

// Change describes since when a behavior is as it is: "failed since report 3 (2026-03-04, v1.37.2), passed in report 2 (2026-03-01, v1.36.3)".
func (h History) Change(s Series) string {
	state := string(s.Outcome)
	if newest := s.Outcomes[len(s.Outcomes)-1]; newest == v1alpha1.Errored {
		state = string(newest)
	} else if !isResult(newest) {
		state = "not tested"
	}
	switch {
	case s.Before == 0 && passes(s.Outcome):
		return state + " since " + h.place(s.Since, s.SinceVersion)
	case s.Before == 0:
		return state + ", did not pass in any report since " + h.place(s.Since, s.SinceVersion)
	}
	change := fmt.Sprintf("%s since %s, %s in %s", state, h.place(s.Since, s.SinceVersion), s.Outcomes[s.Before-1], h.place(s.Before, s.BeforeVersion))
	if s.Changes > 1 {
		change += fmt.Sprintf("; changed %d times", s.Changes)
	}
	return change
}

// place names a report by its number, with its day and the version of the server.
func (h History) place(number int, version string) string {
	described := h.Reports[number-1].Start.UTC().Format(time.DateOnly)
	if version != "" {
		described += ", " + version
	}
	return fmt.Sprintf("report %d (%s)", number, described)
}

// Name names what is slower.
func (s Slowdown) Name() string { return cmp.Or(s.Behavior, s.Figure) }

// Change describes a slowdown: "41 ms -> 410 ms (10.0 times) since report 5".
func (s Slowdown) Change() string {
	return fmt.Sprintf("%s -> %s (%.1f times) since report %d", report.Seconds(s.OldSeconds), report.Seconds(s.NewSeconds), s.NewSeconds/s.OldSeconds, s.Before)
}

// Remarks name the clusters that only some of the reports have.
func (h History) Remarks() []string {
	var remarks []string
	for _, name := range h.Gone {
		remarks = append(remarks, fmt.Sprintf("Cluster %s is not in the newest report.", name))
	}
	for _, name := range h.New {
		remarks = append(remarks, fmt.Sprintf("Cluster %s is only in the newest report.", name))
	}
	return remarks
}

// Conclusion returns the result in a line, with what was lost.
func (h History) Conclusion() string {
	conclusion := "Nothing regressed."
	switch ofClusters, ofKubectl := h.regressed(false), h.regressed(true); {
	case ofClusters > 0 && ofKubectl > 0:
		conclusion = fmt.Sprintf("%s regressed, and %s of kubectl.", report.Behaviors(ofClusters), report.Behaviors(ofKubectl))
	case ofClusters > 0:
		conclusion = report.Behaviors(ofClusters) + " regressed."
	case ofKubectl > 0:
		conclusion = report.Behaviors(ofKubectl) + " of kubectl regressed, none of a cluster."
	case len(h.Outdated) > 0:
		conclusion = "Nothing regressed, but known failures are outdated."
	case len(h.Lists())+len(h.Slower)+len(h.Gone)+len(h.New) == 0:
		conclusion = "Nothing changed."
	}
	var lost []string
	if len(h.Lost) > 0 {
		lost = append(lost, report.Behaviors(len(h.Lost)))
	}
	if len(h.Gone) > 0 {
		lost = append(lost, fmt.Sprintf("%d of the clusters", len(h.Gone)))
	}
	if len(lost) > 0 {
		conclusion += " No longer tested: " + strings.Join(lost, " and ") + "."
	}
	return conclusion
}
