package compare

import (
	"fmt"
	"io"
	"strings"

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
	for _, list := range []List{{"Failing", h.Failing}, {"Outdated known failures", h.Outdated}, {"Passing again", h.Fixed}, {"No longer tested", h.Lost}} {
		if len(list.Series) > 0 {
			lists = append(lists, list)
		}
	}
	return lists
}

// WriteHistory writes a history for a terminal: the reports, and then the most important changes first, one a line.
func WriteHistory(w io.Writer, h History) error {
	var text strings.Builder
	for i, origin := range h.Reports {
		fmt.Fprintf(&text, "%d: %s\n", i+1, origin)
	}
	text.WriteString("\n")
	for _, list := range h.Lists() {
		fmt.Fprintf(&text, "%s (%d)\n", list.Title, len(list.Series))
		for _, series := range list.Series {
			line := report.OneLine(series.Behavior, lineLimit) + " on " + report.OneLine(series.Cluster, lineLimit) + ": " + report.OneLine(h.Change(series), lineLimit)
			if series.Reason != "" {
				line += ": " + report.OneLine(series.Reason, lineLimit)
			}
			text.WriteString("  " + line + "\n")
		}
		text.WriteString("\n")
	}
	if len(h.Drifted) > 0 {
		fmt.Fprintf(&text, "Drifted (%d)\n", len(h.Drifted))
		for _, drift := range h.Drifted {
			fmt.Fprintf(&text, "  %s on %s: %s\n", report.OneLine(drift.Name(), lineLimit), report.OneLine(drift.Cluster, lineLimit), report.OneLine(h.DriftChange(drift), lineLimit))
		}
		text.WriteString("\n")
	}
	for _, name := range h.Gone {
		fmt.Fprintf(&text, "Cluster %s is not in the newest report.\n", report.OneLine(name, lineLimit))
	}
	text.WriteString(h.Conclusion() + "\n")
	if _, err := io.WriteString(visible.NewLog(w), text.String()); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// Change describes since when a behavior is as it is: "failed since report 3 (2026-03-04, v1.37.2), passed in report 2 (2026-03-01, v1.36.3)".
func (h History) Change(s Series) string {
	state := string(s.Outcome)
	if newest := s.Outcomes[len(s.Outcomes)-1]; newest == v1alpha1.Errored {
		state = string(newest)
	} else if !isResult(newest) {
		state = "not tested"
	}
	if s.Before == 0 {
		return state + ", did not pass in any report since " + h.place(s.Since, s.SinceVersion)
	}
	change := fmt.Sprintf("%s since %s, %s in %s", state, h.place(s.Since, s.SinceVersion), s.Outcomes[s.Before-1], h.place(s.Before, s.BeforeVersion))
	if s.Changes > 1 {
		change += fmt.Sprintf("; changed %d times", s.Changes)
	}
	return change
}

// Name names what has drifted.
func (d Drift) Name() string {
	if d.Behavior != "" {
		return d.Behavior
	}
	return d.Figure
}

// DriftChange describes a drift: "41 ms -> 410 ms (10.0 times) since report 5 (2026-03-04, v1.37.2): medians of 4 and 3 reports".
func (h History) DriftChange(d Drift) string {
	return fmt.Sprintf("%s -> %s (%.1f times) since %s: medians of %d and %d reports", report.Seconds(d.OldSeconds), report.Seconds(d.NewSeconds), d.NewSeconds/d.OldSeconds,
		h.place(d.Since, d.SinceVersion), d.Before, d.After)
}

// place names a report by its number, with its day and the version of the server.
func (h History) place(number int, version string) string {
	described := date(h.Reports[number-1].Start)
	if version != "" {
		described += ", " + version
	}
	return fmt.Sprintf("report %d (%s)", number, described)
}

// Conclusion returns the result of a history in a line.
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
	}
	if drifted := len(h.Drifted); drifted == 1 {
		conclusion += " 1 duration drifted."
	} else if drifted > 1 {
		conclusion += fmt.Sprintf(" %d durations drifted.", drifted)
	}
	return conclusion
}
