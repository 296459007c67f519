// Package compare compares two reports, and shows the history of several.
package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// Tolerance is the increase of a duration that is not reported.
type Tolerance struct {
	// Factor is the permitted factor.
	Factor float64
	// Least is the minimum difference of slower durations, regardless of the factor.
	Least time.Duration
}

// DefaultTolerance permits twice the duration, and differences of half a second.
var DefaultTolerance = Tolerance{Factor: 2, Least: 500 * time.Millisecond}

// Change is one behavior, or figure, on one cluster in two reports.
type Change struct {
	Cluster string `json:"cluster"`
	// Behavior is the id of the behavior, Statement its promise.
	Behavior  string `json:"behavior,omitempty"`
	Statement string `json:"statement,omitempty"`
	// Kubectl is set for behaviors of kubectl.
	Kubectl bool `json:"kubectl,omitempty"`
	// Figure is the measurement, for a change of a figure's median.
	Figure string `json:"figure,omitempty"`
	// Old and New are the outcomes; empty when a report does not contain the behavior.
	Old v1alpha1.Outcome `json:"old,omitempty"`
	New v1alpha1.Outcome `json:"new,omitempty"`
	// OldSeconds and NewSeconds are the durations, for slower ones.
	OldSeconds float64 `json:"oldSeconds,omitempty"`
	NewSeconds float64 `json:"newSeconds,omitempty"`
	// Reason is the message of a new failure, or why the behavior is no longer tested.
	Reason string `json:"reason,omitempty"`
}

// Origin names a report that is compared.
type Origin struct {
	// File is where it was read from; empty when it was not read.
	File string `json:"file,omitempty"`
	// RunID, Runner and Start are those of the report.
	RunID  string    `json:"runID"`
	Runner string    `json:"runner"`
	Start  time.Time `json:"start"`
}

func originOf(r v1alpha1.Report) Origin {
	return Origin{RunID: r.RunID, Runner: r.Runner, Start: r.Start}
}

// String names the report in one line.
func (o Origin) String() string {
	named := fmt.Sprintf("run %s of %s by runner %s", o.RunID, o.Start.UTC().Format(time.DateTime), cmp.Or(o.Runner, "unknown"))
	if o.File != "" {
		named = o.File + " (" + named + ")"
	}
	return report.OneLine(named, lineLimit)
}

// Comparison is the difference between two reports. A behavior is in at most one of the lists, except Slower.
type Comparison struct {
	// Old and New are the reports.
	Old Origin `json:"old"`
	New Origin `json:"new"`
	// Regressed: passed before, and fails now or could not be tested because the new run failed.
	Regressed []Change `json:"regressed,omitempty"`
	// Fixed: failed before, and passes now.
	Fixed []Change `json:"fixed,omitempty"`
	// Outdated: a known failure passed in the new run, or its date is over.
	Outdated []Change `json:"outdated,omitempty"`
	// NewlyKnown: passed before, and fails now as the list of known failures of the new run expects.
	NewlyKnown []Change `json:"newlyKnown,omitempty"`
	// Deviating: an observed behavior passed before and deviates now; a regression if the new run is strict.
	Deviating []Change `json:"deviating,omitempty"`
	// NewlySkipped: tested before, and not now.
	NewlySkipped []Change `json:"newlySkipped,omitempty"`
	// NewlyTested: not tested before, and tested now, with any outcome.
	NewlyTested []Change `json:"newlyTested,omitempty"`
	// Slower: passed both times, with a duration beyond the tolerance; includes figures.
	Slower []Change `json:"slower,omitempty"`
	// OldOnly and NewOnly are the clusters in only one of the reports.
	OldOnly []string `json:"oldOnly,omitempty"`
	NewOnly []string `json:"newOnly,omitempty"`
}

// HasLost reports whether results were lost: a behavior is no longer tested, or a cluster is only in the old report.
func (c Comparison) HasLost() bool { return len(c.NewlySkipped)+len(c.OldOnly) > 0 }

// HasRegressed reports whether a behavior of a cluster has regressed, or is an outdated known failure.
func (c Comparison) HasRegressed() bool {
	return count(c.Regressed, false)+count(c.Outdated, false) > 0
}

// KubectlHasRegressed reports whether a behavior of kubectl has regressed, or is an outdated known failure.
func (c Comparison) KubectlHasRegressed() bool {
	return count(c.Regressed, true)+count(c.Outdated, true) > 0
}

// count counts the changes of kubectl, or of clusters.
func count(changes []Change, ofKubectl bool) int {
	count := 0
	for _, change := range changes {
		if change.Kubectl == ofKubectl {
			count++
		}
	}
	return count
}

// Reports compares two reports. Clusters are matched by name; the only clusters of two reports always match, as before and after an
// upgrade.
func Reports(before, after v1alpha1.Report, tolerance Tolerance) Comparison {
	c := Comparison{Old: originOf(before), New: originOf(after)}
	for _, is := range after.Clusters {
		was, ok := counterpart(before, after, is)
		if !ok {
			c.NewOnly = append(c.NewOnly, is.Name)
			continue
		}
		c.results(was, is, after.Strict, tolerance)
		c.figures(was, is, tolerance)
	}
	for _, was := range before.Clusters {
		if _, ok := counterpart(after, before, was); !ok {
			c.OldOnly = append(c.OldOnly, was.Name)
		}
	}
	return c
}

// counterpart returns the cluster in one report that matches a cluster of the other.
func counterpart(in, from v1alpha1.Report, cluster v1alpha1.Cluster) (v1alpha1.Cluster, bool) {
	if len(in.Clusters) == 1 && len(from.Clusters) == 1 {
		return in.Clusters[0], true
	}
	i := slices.IndexFunc(in.Clusters, func(c v1alpha1.Cluster) bool { return c.Name == cluster.Name })
	if i < 0 {
		return v1alpha1.Cluster{}, false
	}
	return in.Clusters[i], true
}

// results compares the behaviors of one cluster, including those in only one report.
func (c *Comparison) results(before, after v1alpha1.Cluster, strict bool, tolerance Tolerance) {
	was := map[string]v1alpha1.Result{}
	for _, result := range before.Results {
		was[result.ID] = result
	}
	for _, result := range after.Results {
		c.result(after.Name, was[result.ID], result, strict, tolerance)
		delete(was, result.ID)
	}
	for _, result := range before.Results {
		if _, gone := was[result.ID]; gone {
			absent := v1alpha1.Result{Behavior: result.Behavior, Reason: "the new report does not have it"}
			if after.Problem != "" {
				absent.Outcome, absent.Reason = v1alpha1.Errored, after.Problem
			}
			c.result(after.Name, result, absent, strict, tolerance)
		}
	}
}

func (c *Comparison) result(cluster string, was, is v1alpha1.Result, strict bool, tolerance Tolerance) {
	change := Change{
		Cluster: cluster, Behavior: is.ID, Statement: is.Statement, Kubectl: is.IsKubectl(), Old: was.Outcome, New: is.Outcome, Reason: is.Reason,
	}
	if is.Failure != nil && is.Outcome != v1alpha1.Passed {
		change.Reason = cmp.Or(is.Reason, is.Failure.Message)
	}
	passed := was.Outcome == v1alpha1.Passed || was.Outcome == v1alpha1.Outdated
	held := passed || was.Outcome == v1alpha1.Deviated && !strict
	fails := is.Outcome == v1alpha1.Failed || is.Outcome == v1alpha1.Deviated && strict
	switch {
	case held && (fails || is.Outcome == v1alpha1.Errored), was.Outcome == v1alpha1.Known && fails:
		c.Regressed = append(c.Regressed, change)
	case is.Outcome == v1alpha1.Outdated:
		c.Outdated = append(c.Outdated, change)
	case held && is.Outcome == v1alpha1.Known:
		c.NewlyKnown = append(c.NewlyKnown, change)
	case passed && is.Outcome == v1alpha1.Deviated:
		c.Deviating = append(c.Deviating, change)
	case is.Outcome == v1alpha1.Passed && (was.Outcome == v1alpha1.Failed || was.Outcome == v1alpha1.Known || was.Outcome == v1alpha1.Deviated):
		c.Fixed = append(c.Fixed, change)
	case report.WasTested(was) && !report.WasTested(is):
		c.NewlySkipped = append(c.NewlySkipped, change)
	case !report.WasTested(was) && report.WasTested(is):
		c.NewlyTested = append(c.NewlyTested, change)
	case was.Outcome == v1alpha1.Passed && is.Outcome == v1alpha1.Passed && tolerance.exceeded(was.Seconds, is.Seconds):
		change.OldSeconds, change.NewSeconds = was.Seconds, is.Seconds
		c.Slower = append(c.Slower, change)
	}
}

// exceeded reports whether a duration exceeds the tolerance.
func (t Tolerance) exceeded(was, is float64) bool {
	return is > was*t.Factor && is-was > t.Least.Seconds()
}

// lineLimit limits a name or a message in a line, in characters.
const lineLimit = 300

const (
	// minMeasured is the minimum number of deletions for comparing medians.
	minMeasured = 10
	// minChange is the minimum difference of slower medians, because deletions are short.
	minChange = 10 * time.Millisecond
)

// figures compares the medians of figures.
func (c *Comparison) figures(before, after v1alpha1.Cluster, tolerance Tolerance) {
	tolerance.Least = minChange
	for _, now := range after.Figures {
		i := slices.IndexFunc(before.Figures, func(f v1alpha1.Figure) bool { return figures.Same(f, now) })
		if i < 0 || min(now.Count, before.Figures[i].Count) < minMeasured {
			continue
		}
		if was := before.Figures[i]; tolerance.exceeded(was.P50, now.P50) {
			c.Slower = append(c.Slower, Change{Cluster: after.Name, Figure: figures.Name(now), OldSeconds: was.P50, NewSeconds: now.P50})
		}
	}
}

// Write writes a comparison for a terminal: the most important changes first, one a line.
func Write(w io.Writer, c Comparison) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Old: %s\nNew: %s\n\n", c.Old, c.New)
	for _, list := range []struct {
		title   string
		changes []Change
	}{
		{"Regressed", c.Regressed},
		{"Outdated known failures", c.Outdated},
		{"Failing as known", c.NewlyKnown},
		{"Deviating now", c.Deviating},
		{"Fixed", c.Fixed},
		{"No longer tested", c.NewlySkipped},
		{"Newly tested", c.NewlyTested},
		{"Slower", c.Slower},
	} {
		if len(list.changes) == 0 {
			continue
		}
		fmt.Fprintf(&text, "%s (%d)\n", list.title, len(list.changes))
		for _, change := range list.changes {
			text.WriteString("  " + change.line() + "\n")
		}
		text.WriteString("\n")
	}
	for _, name := range c.OldOnly {
		fmt.Fprintf(&text, "Cluster %s is only in the old report.\n", report.OneLine(name, lineLimit))
	}
	for _, name := range c.NewOnly {
		fmt.Fprintf(&text, "Cluster %s is only in the new report.\n", report.OneLine(name, lineLimit))
	}
	text.WriteString(c.conclusion() + c.loss() + "\n")
	if _, err := io.WriteString(visible.NewLog(w), text.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

func (c Comparison) conclusion() string {
	changes := len(c.NewlyKnown) + len(c.Deviating) + len(c.Fixed) + len(c.NewlySkipped) + len(c.NewlyTested) + len(c.Slower) + len(c.OldOnly) + len(c.NewOnly)
	switch ofClusters, ofKubectl := count(c.Regressed, false), count(c.Regressed, true); {
	case ofClusters > 0 && ofKubectl > 0:
		return fmt.Sprintf("%s regressed, and %s of kubectl.", report.Behaviors(ofClusters), report.Behaviors(ofKubectl))
	case ofClusters > 0:
		return report.Behaviors(ofClusters) + " regressed."
	case ofKubectl > 0:
		return report.Behaviors(ofKubectl) + " of kubectl regressed, none of a cluster."
	case len(c.Outdated) > 0:
		return "Nothing regressed, but known failures are outdated."
	case changes == 0:
		return "Nothing changed."
	}
	return "Nothing regressed."
}

// loss lists the lost results; it is empty if none were.
func (c Comparison) loss() string {
	var lost []string
	if skipped := len(c.NewlySkipped); skipped > 0 {
		lost = append(lost, report.Behaviors(skipped))
	}
	if gone := len(c.OldOnly); gone > 0 {
		lost = append(lost, fmt.Sprintf("%d of the old report's clusters", gone))
	}
	if len(lost) == 0 {
		return ""
	}
	return " No longer tested: " + strings.Join(lost, " and ") + "."
}

// line describes a change on one line.
func (c Change) line() string {
	line := report.OneLine(cmp.Or(c.Behavior, c.Figure), lineLimit) + " on " + report.OneLine(c.Cluster, lineLimit) + ": "
	if c.NewSeconds > 0 {
		line += fmt.Sprintf("%s -> %s", report.Seconds(c.OldSeconds), report.Seconds(c.NewSeconds))
		if c.OldSeconds > 0 {
			line += fmt.Sprintf(" (%.1f times)", c.NewSeconds/c.OldSeconds)
		}
		return line
	}
	line += fmt.Sprintf("%s -> %s", cmp.Or(c.Old, "absent"), cmp.Or(c.New, "absent"))
	if c.Reason != "" {
		line += ": " + report.OneLine(c.Reason, lineLimit)
	}
	return line
}
