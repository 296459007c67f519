// Package compare says what changed from one report to another.
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
)

// Tolerance is how much slower something may become before a comparison says so.
type Tolerance struct {
	// Factor is how many times as long it may take.
	Factor float64
	// Least is the difference below which nothing counts as slower, whatever the factor.
	Least time.Duration
}

// DefaultTolerance lets behaviors take twice as long, and differ by half a second.
var DefaultTolerance = Tolerance{Factor: 2, Least: 500 * time.Millisecond}

// Change is one behavior, or figure, on one cluster in two reports.
type Change struct {
	Cluster string `json:"cluster"`
	// Behavior is the id of the behavior, Statement its promise.
	Behavior  string `json:"behavior,omitempty"`
	Statement string `json:"statement,omitempty"`
	// Kubectl says that the behavior is one of kubectl, not of the cluster.
	Kubectl bool `json:"kubectl,omitempty"`
	// Figure is what was measured, where the change is one of a figure's median.
	Figure string `json:"figure,omitempty"`
	// Old and New are the outcomes; empty where a report does not have the behavior.
	Old v1alpha1.Outcome `json:"old,omitempty"`
	New v1alpha1.Outcome `json:"new,omitempty"`
	// OldSeconds and NewSeconds are the times, for what became slower.
	OldSeconds float64 `json:"oldSeconds,omitempty"`
	NewSeconds float64 `json:"newSeconds,omitempty"`
	// Reason is the new failure's message, or why the behavior is not tested any more.
	Reason string `json:"reason,omitempty"`
}

// Comparison is what changed from one report to another. A behavior stands in at most one of the lists, but for
// Slower.
type Comparison struct {
	// Regressed: what held does not any more, or could not be tested because the new run failed.
	Regressed []Change `json:"regressed,omitempty"`
	// Fixed: what failed does now.
	Fixed []Change `json:"fixed,omitempty"`
	// Deviating: an observed behavior held and deviates now; a regression where the new run is strict.
	Deviating []Change `json:"deviating,omitempty"`
	// NewlySkipped: what was tested is not any more.
	NewlySkipped []Change `json:"newlySkipped,omitempty"`
	// NewlyTested: what was not tested is now, whatever came out.
	NewlyTested []Change `json:"newlyTested,omitempty"`
	// Slower: what held both times, and took longer than the tolerance; and figures likewise.
	Slower []Change `json:"slower,omitempty"`
	// OldOnly and NewOnly are the clusters that only one of the reports has.
	OldOnly []string `json:"oldOnly,omitempty"`
	NewOnly []string `json:"newOnly,omitempty"`
}

// HasRegressed reports whether a behavior of a cluster that held does not any more.
func (c Comparison) HasRegressed() bool { return c.regressions(false) > 0 }

// KubectlHasRegressed reports whether a behavior of kubectl that held does not any more.
func (c Comparison) KubectlHasRegressed() bool { return c.regressions(true) > 0 }

// regressions counts those of kubectl, or those of clusters.
func (c Comparison) regressions(ofKubectl bool) int {
	count := 0
	for _, change := range c.Regressed {
		if change.Kubectl == ofKubectl {
			count++
		}
	}
	return count
}

// Reports says what changed. Clusters are matched by their names; two reports of one cluster each are compared whatever
// the cluster is called, as before and after an upgrade.
func Reports(before, after v1alpha1.Report, tolerance Tolerance) Comparison {
	var c Comparison
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

// counterpart is the cluster of one report that a cluster of another is compared with.
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

// results compares the behaviors of one cluster, also those that only one of the reports has.
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
		change.Reason = is.Failure.Message
	}
	held := was.Outcome == v1alpha1.Passed || was.Outcome == v1alpha1.Deviated && !strict
	switch {
	case held && (is.Outcome == v1alpha1.Failed || is.Outcome == v1alpha1.Errored || is.Outcome == v1alpha1.Deviated && strict):
		c.Regressed = append(c.Regressed, change)
	case was.Outcome == v1alpha1.Passed && is.Outcome == v1alpha1.Deviated:
		c.Deviating = append(c.Deviating, change)
	case is.Outcome == v1alpha1.Passed && (was.Outcome == v1alpha1.Failed || was.Outcome == v1alpha1.Deviated):
		c.Fixed = append(c.Fixed, change)
	case tested(was) && !tested(is):
		c.NewlySkipped = append(c.NewlySkipped, change)
	case !tested(was) && tested(is):
		c.NewlyTested = append(c.NewlyTested, change)
	case was.Outcome == v1alpha1.Passed && is.Outcome == v1alpha1.Passed && tolerance.exceeded(was.Seconds, is.Seconds):
		change.OldSeconds, change.NewSeconds = was.Seconds, is.Seconds
		c.Slower = append(c.Slower, change)
	}
}

func tested(result v1alpha1.Result) bool {
	return result.Outcome == v1alpha1.Passed || result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Deviated
}

// exceeded is true when what took some seconds takes more than the tolerance allows.
func (t Tolerance) exceeded(was, is float64) bool {
	return is > was*t.Factor && is-was > t.Least.Seconds()
}

// lineLimit is how many characters of a name or a message a line shows.
const lineLimit = 300

const (
	// fewestMeasured is how many deletions make a median that is worth comparing.
	fewestMeasured = 10
	// leastOfFigures is the difference below which a median did not become slower: deletions are short.
	leastOfFigures = 10 * time.Millisecond
)

// figures compares the medians of what was measured.
func (c *Comparison) figures(before, after v1alpha1.Cluster, tolerance Tolerance) {
	tolerance.Least = leastOfFigures
	for _, is := range after.Figures {
		i := slices.IndexFunc(before.Figures, func(f v1alpha1.Figure) bool { return figures.Same(f, is) })
		if i < 0 || min(is.Count, before.Figures[i].Count) < fewestMeasured {
			continue
		}
		if was := before.Figures[i]; tolerance.exceeded(was.P50, is.P50) {
			c.Slower = append(c.Slower, Change{Cluster: after.Name, Figure: figures.Name(is), OldSeconds: was.P50, NewSeconds: is.P50})
		}
	}
}

// Write writes what changed for a terminal: what matters most first, one line a change.
func Write(w io.Writer, c Comparison) error {
	var text strings.Builder
	for _, list := range []struct {
		title   string
		changes []Change
	}{
		{"Regressed", c.Regressed},
		{"Deviating now", c.Deviating},
		{"Fixed", c.Fixed},
		{"Not tested any more", c.NewlySkipped},
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
	text.WriteString(c.conclusion() + "\n")
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

func (c Comparison) conclusion() string {
	switch changes := len(c.Deviating) + len(c.Fixed) + len(c.NewlySkipped) + len(c.NewlyTested) + len(c.Slower); {
	case c.HasRegressed() && c.KubectlHasRegressed():
		return fmt.Sprintf("%s regressed, and %s of kubectl.", report.Behaviors(c.regressions(false)), report.Behaviors(c.regressions(true)))
	case c.HasRegressed():
		return report.Behaviors(len(c.Regressed)) + " regressed."
	case c.KubectlHasRegressed():
		return report.Behaviors(len(c.Regressed)) + " of kubectl regressed, none of a cluster."
	case changes == 0:
		return "Nothing changed."
	}
	return "Nothing regressed."
}

// line is a change as one line of text.
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
