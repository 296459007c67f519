// Package compare shows what changed over reports: from an old one to a new one, or over a history of several.
package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// DefaultFactor is the factor by which a duration may be longer without being listed.
const DefaultFactor = 2

const (
	// leastOfBehaviors and minChange are the minimum differences of slower durations, regardless of the factor. Those of figures are
	// shorter, because deletions are.
	leastOfBehaviors, minChange = 500 * time.Millisecond, 10 * time.Millisecond
	// minMeasured is the minimum number of deletions for comparing medians.
	minMeasured = 10
	// lineLimit limits a name or a message in a line, in characters.
	lineLimit = 300
)

// Origin names a report that is compared.
type Origin struct {
	// File is where it was read from; empty when it was not read.
	File string `json:"file,omitempty"`
	// RunID, Runner and Start are those of the report.
	RunID  string    `json:"runID"`
	Runner string    `json:"runner"`
	Start  time.Time `json:"start"`
}

// String names the report in one line.
func (o Origin) String() string {
	named := fmt.Sprintf("run %s of %s by runner %s", o.RunID, o.Start.UTC().Format(time.DateTime), cmp.Or(o.Runner, "unknown"))
	if o.File != "" {
		named = o.File + " (" + named + ")"
	}
	return report.OneLine(named, lineLimit)
}

// History is what changed over reports. A behavior of a cluster is in at most one of the lists, except Slower.
type History struct {
	// Reports are the reports, the oldest first. Others refer to them by number, from 1.
	Reports []Origin `json:"reports"`
	// Failing: failed, failed as known, or deviated in the newest report.
	Failing []Series `json:"failing,omitempty"`
	// Outdated: a known failure that passed in the newest report, or whose date is over.
	Outdated []Series `json:"outdated,omitempty"`
	// Fixed: one of these in an earlier report, and passed in the newest.
	Fixed []Series `json:"fixed,omitempty"`
	// Lost: tested in an earlier report, and not in the newest.
	Lost []Series `json:"lost,omitempty"`
	// NewlyTested: passed in the newest report, and tested in no earlier one.
	NewlyTested []Series `json:"newlyTested,omitempty"`
	// Slower are durations that are longer in the newest report, beyond the tolerance.
	Slower []Slowdown `json:"slower,omitempty"`
	// Gone are the clusters that the newest report does not have, and New those that only it has.
	Gone []string `json:"gone,omitempty"`
	New  []string `json:"new,omitempty"`
}

// Series is one behavior of a cluster in each of the reports.
type Series struct {
	Cluster   string `json:"cluster"`
	Behavior  string `json:"behavior"`
	Statement string `json:"statement,omitempty"`
	// Kubectl is set for behaviors of kubectl.
	Kubectl bool `json:"kubectl,omitempty"`
	// Outcomes has one for each report; empty where a report does not contain the behavior.
	Outcomes []v1alpha1.Outcome `json:"outcomes"`
	// Outcome is the last one with a result.
	Outcome v1alpha1.Outcome `json:"outcome"`
	// Since is the number of the first report of the present state, and Before that of the last one in another; 0 when there is none.
	// Reports that did not test the behavior do not count, except for lost behaviors.
	Since  int `json:"since"`
	Before int `json:"before,omitempty"`
	// SinceVersion and BeforeVersion are the versions of the server in these reports.
	SinceVersion  string `json:"sinceVersion,omitempty"`
	BeforeVersion string `json:"beforeVersion,omitempty"`
	// Changes counts how often the behavior changed between passing and not.
	Changes int `json:"changes,omitempty"`
	// Regressed is set when an earlier run did not count it as failed, and the newest one does, or could not test it because of an error.
	Regressed bool `json:"regressed,omitempty"`
	// Reason is the message of the failure in the newest report, or why the behavior is no longer tested.
	Reason string `json:"reason,omitempty"`
}

// Slowdown is a duration that is longer in the newest report: of a behavior that passed, or the median of a figure.
type Slowdown struct {
	Cluster string `json:"cluster"`
	// Behavior is the id of a behavior, and Figure the name of a figure; one is empty.
	Behavior string `json:"behavior,omitempty"`
	Figure   string `json:"figure,omitempty"`
	// OldSeconds is the duration in the last report before that has one, whose number is Before; NewSeconds is that in the newest.
	OldSeconds float64 `json:"oldSeconds"`
	NewSeconds float64 `json:"newSeconds"`
	Before     int     `json:"before"`
}

// HasRegressed reports whether a behavior of a cluster has regressed, or is an outdated known failure in the newest report.
func (h History) HasRegressed() bool { return h.regressed(false)+h.outdated(false) > 0 }

// KubectlHasRegressed reports the same for behaviors of kubectl.
func (h History) KubectlHasRegressed() bool { return h.regressed(true)+h.outdated(true) > 0 }

// HasLost reports whether a behavior or a cluster is no longer tested.
func (h History) HasLost() bool { return len(h.Lost)+len(h.Gone) > 0 }

// regressed counts regressed behaviors of kubectl, or of clusters, and outdated the outdated known failures.
func (h History) regressed(ofKubectl bool) (count int) {
	for _, series := range slices.Concat(h.Failing, h.Lost) {
		if series.Kubectl == ofKubectl && series.Regressed {
			count++
		}
	}
	return count
}

func (h History) outdated(ofKubectl bool) (count int) {
	for _, series := range h.Outdated {
		if series.Kubectl == ofKubectl {
			count++
		}
	}
	return count
}

// ByStart orders reports by their start. It fails when a run occurs twice.
func ByStart(sources []report.Source) ([]report.Source, error) {
	ordered := slices.Clone(sources)
	slices.SortStableFunc(ordered, func(a, b report.Source) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.RunID, b.RunID)) })
	for i, source := range ordered[1:] {
		if before := ordered[i]; source.RunID == before.RunID && source.Start.Equal(before.Start) {
			return nil, fmt.Errorf("%s and %s are the same run: name each report once", before.File, source.File)
		}
	}
	return ordered, nil
}

// Over returns the history of reports, the oldest first. Clusters are matched by name; the only clusters of all reports always match, as
// before and after an upgrade. A duration is slower if it is longer by more than the factor. It fails when no two reports have a cluster in
// common.
func Over(sources []report.Source, factor float64) (History, error) {
	h := History{}
	for _, source := range sources {
		h.Reports = append(h.Reports, Origin{source.File, source.RunID, source.Runner, source.Start})
	}
	columns := columnsOf(sources)
	if !slices.ContainsFunc(columns, func(c column) bool { return len(c.clusters) > 1 }) {
		return History{}, fmt.Errorf("no two of the reports have a cluster in common (%s): compare reports of the same clusters, or of one cluster each", namesOf(columns))
	}
	for _, column := range columns {
		switch _, present := column.clusters[len(sources)-1]; {
		case !present:
			h.Gone = append(h.Gone, column.name)
			continue
		case len(column.clusters) == 1:
			h.New = append(h.New, column.name)
			continue
		}
		for _, results := range column.results(len(sources)) {
			h.add(column.series(results, sources[len(sources)-1].Strict))
			h.slower(Slowdown{Cluster: column.name, Behavior: results[len(results)-1].ID}, factor, leastOfBehaviors, column.durations(results))
		}
		for _, figure := range column.clusters[len(sources)-1].Figures {
			h.slower(Slowdown{Cluster: column.name, Figure: figures.Name(figure)}, factor, minChange, column.medians(figure, len(sources)))
		}
	}
	latestFirst := func(a, b Series) int {
		return cmp.Or(-cmp.Compare(a.Since, b.Since), cmp.Compare(a.Behavior, b.Behavior), cmp.Compare(a.Cluster, b.Cluster))
	}
	for _, list := range [][]Series{h.Failing, h.Fixed, h.Lost, h.Outdated, h.NewlyTested} {
		slices.SortStableFunc(list, latestFirst)
	}
	return h, nil
}

func (h *History) add(series Series) {
	switch newest := series.Outcomes[len(series.Outcomes)-1]; {
	case series.Outcome == "": // never tested
	case !isResult(newest):
		h.Lost = append(h.Lost, series)
	case newest == v1alpha1.Outdated:
		h.Outdated = append(h.Outdated, series)
	case newest != v1alpha1.Passed:
		h.Failing = append(h.Failing, series)
	case series.Changes > 0:
		h.Fixed = append(h.Fixed, series)
	case series.Since == len(series.Outcomes):
		h.NewlyTested = append(h.NewlyTested, series)
	}
}

// slower adds a slowdown if the newest of the durations exceeds the last one before by a factor, and by a time. Zeros are left out.
func (h *History) slower(of Slowdown, factor float64, least time.Duration, seconds []float64) {
	newest := len(seconds) - 1
	for i := newest - 1; i >= 0; i-- {
		if seconds[i] == 0 {
			continue
		}
		if seconds[newest] > seconds[i]*factor && seconds[newest]-seconds[i] > least.Seconds() {
			of.OldSeconds, of.NewSeconds, of.Before = seconds[i], seconds[newest], i+1
			h.Slower = append(h.Slower, of)
		}
		return
	}
}

// column is one cluster in those reports that have it, by index.
type column struct {
	name     string
	clusters map[int]v1alpha1.Cluster
}

func columnsOf(sources []report.Source) []column {
	single := !slices.ContainsFunc(sources, func(s report.Source) bool { return len(s.Clusters) != 1 })
	var columns []column
	for i := len(sources) - 1; i >= 0; i-- { // names and their order are those of the newest report
		for _, cluster := range sources[i].Clusters {
			at := slices.IndexFunc(columns, func(c column) bool { return single || c.name == cluster.Name })
			if at < 0 {
				columns = append(columns, column{cluster.Name, map[int]v1alpha1.Cluster{i: cluster}})
				continue
			}
			columns[at].clusters[i] = cluster
		}
	}
	return columns
}

func namesOf(columns []column) string {
	var names []string
	for _, column := range columns {
		names = append(names, report.OneLine(column.name, lineLimit))
	}
	return strings.Join(names, ", ")
}

// results returns the behaviors of a cluster with one result for each report, in the order of the newest report, and then of older ones.
func (c column) results(reports int) [][]v1alpha1.Result {
	var all [][]v1alpha1.Result
	indexes := map[string]int{}
	for i := reports - 1; i >= 0; i-- {
		for _, result := range c.clusters[i].Results {
			at, known := indexes[result.ID]
			if !known {
				at, indexes[result.ID] = len(all), len(all)
				all = append(all, make([]v1alpha1.Result, reports))
			}
			all[at][i] = result
		}
	}
	return all
}

// series returns the series of a behavior with one result for each report.
func (c column) series(results []v1alpha1.Result, strict bool) Series {
	newest := len(results) - 1
	described := results[newest]
	if described.ID == "" {
		described = results[slices.IndexFunc(results, func(r v1alpha1.Result) bool { return r.ID != "" })]
	}
	s := Series{Cluster: c.name, Behavior: described.ID, Statement: described.Statement, Kubectl: described.IsKubectl(), Reason: c.reason(results[newest], newest)}
	last, tolerated := -1, false // the last report with a result, and whether an earlier one did not count it as failed
	for i, result := range results {
		s.Outcomes = append(s.Outcomes, result.Outcome)
		if !isResult(result.Outcome) {
			continue
		}
		if last < 0 || passes(result.Outcome) != passes(s.Outcome) {
			if last >= 0 {
				s.Changes++
				s.Before = last + 1
			}
			s.Since = i + 1
		}
		s.Outcome, last = result.Outcome, i
		tolerated = tolerated || i < newest && result.Outcome != v1alpha1.Failed && (result.Outcome != v1alpha1.Deviated || !strict)
	}
	if last >= 0 && last < newest { // lost
		s.Since, s.Before = last+2, last+1
	}
	switch results[newest].Outcome {
	case v1alpha1.Failed:
		s.Regressed = tolerated
	case v1alpha1.Deviated:
		s.Regressed = tolerated && strict
	case v1alpha1.Errored, "":
		errored := results[newest].Outcome != "" || c.clusters[newest].Problem != ""
		s.Regressed = errored && last >= 0 && (passes(s.Outcome) || s.Outcome == v1alpha1.Deviated && !strict)
	}
	s.SinceVersion, s.BeforeVersion = c.clusters[s.Since-1].ServerVersion, c.clusters[s.Before-1].ServerVersion
	return s
}

// reason returns why a behavior did not pass in a report.
func (c column) reason(result v1alpha1.Result, i int) string {
	switch {
	case result.Outcome == "" && c.clusters[i].Problem != "":
		return c.clusters[i].Problem
	case result.Outcome == "":
		return "the newest report does not have it"
	case result.Outcome == v1alpha1.Passed:
		return ""
	case result.Failure != nil:
		return cmp.Or(result.Reason, result.Failure.Message)
	}
	return result.Reason
}

// durations returns how long a behavior took in each report in which it passed; 0 in others.
func (c column) durations(results []v1alpha1.Result) []float64 {
	seconds := make([]float64, len(results))
	for i, result := range results {
		if result.Outcome == v1alpha1.Passed {
			seconds[i] = result.Seconds
		}
	}
	return seconds
}

// medians returns the median of a figure in each report with enough deletions; 0 in others.
func (c column) medians(figure v1alpha1.Figure, reports int) []float64 {
	seconds := make([]float64, reports)
	for i, cluster := range c.clusters {
		at := slices.IndexFunc(cluster.Figures, func(f v1alpha1.Figure) bool { return figures.Same(f, figure) })
		if at >= 0 && cluster.Figures[at].Count >= minMeasured {
			seconds[i] = cluster.Figures[at].P50
		}
	}
	return seconds
}

// isResult reports whether a behavior was tested.
func isResult(outcome v1alpha1.Outcome) bool {
	return report.WasTested(v1alpha1.Result{Outcome: outcome})
}

// passes reports whether a tested behavior passed; an outdated known failure did.
func passes(outcome v1alpha1.Outcome) bool {
	return outcome == v1alpha1.Passed || outcome == v1alpha1.Outdated
}
