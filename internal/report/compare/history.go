package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// History is what changed over several reports. A behavior of a cluster is in at most one of the lists, except Drifted.
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
	// Drifted are durations that have changed for good.
	Drifted []Drift `json:"drifted,omitempty"`
	// Gone are the clusters that the newest report does not have.
	Gone []string `json:"gone,omitempty"`
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

// Over returns the history of reports, in any order. Clusters are matched by name; the only clusters of all reports always match. The
// tolerances are for durations of behaviors and for figures. It fails when a report occurs twice, or no two reports have a cluster in common.
func Over(sources []report.Source, ofBehaviors, ofFigures Tolerance) (History, error) {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b report.Source) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.RunID, b.RunID)) })
	h := History{}
	for i, source := range sources {
		if i > 0 && source.RunID == sources[i-1].RunID && source.Start.Equal(sources[i-1].Start) {
			return History{}, fmt.Errorf("%s and %s are the same run: name each report once", sources[i-1].File, source.File)
		}
		origin := originOf(source.Report)
		origin.File = source.File
		h.Reports = append(h.Reports, origin)
	}
	columns := columnsOf(sources)
	if !slices.ContainsFunc(columns, func(c column) bool { return len(c.clusters) > 1 }) {
		return History{}, fmt.Errorf("no two of the reports have a cluster in common (%s): compare reports of the same clusters, or of one cluster each", namesOf(columns))
	}
	for _, column := range columns {
		if _, ok := column.clusters[len(sources)-1]; !ok {
			h.Gone = append(h.Gone, column.name)
			continue
		}
		for _, series := range column.series(sources) {
			h.add(series)
		}
		h.Drifted = append(h.Drifted, column.drifts(len(sources), ofBehaviors, ofFigures)...)
	}
	latestFirst := func(a, b Series) int {
		return cmp.Or(-cmp.Compare(a.Since, b.Since), cmp.Compare(a.Behavior, b.Behavior), cmp.Compare(a.Cluster, b.Cluster))
	}
	for _, list := range [][]Series{h.Failing, h.Fixed, h.Lost, h.Outdated} {
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

// series returns the behaviors of a cluster, in the order of the newest report, and then of older ones.
func (c column) series(sources []report.Source) []Series {
	byID := map[string][]v1alpha1.Result{}
	var ids []string
	for i := len(sources) - 1; i >= 0; i-- {
		for _, result := range c.clusters[i].Results {
			if byID[result.ID] == nil {
				byID[result.ID] = make([]v1alpha1.Result, len(sources))
				ids = append(ids, result.ID)
			}
			byID[result.ID][i] = result
		}
	}
	var all []Series
	for _, id := range ids {
		all = append(all, c.seriesOf(byID[id], sources[len(sources)-1].Strict))
	}
	return all
}

// seriesOf returns the series of a behavior with one result for each report.
func (c column) seriesOf(results []v1alpha1.Result, strict bool) Series {
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
		s.Regressed = errored && last >= 0 && passes(s.Outcome)
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

// isResult reports whether a behavior was tested.
func isResult(outcome v1alpha1.Outcome) bool {
	return report.WasTested(v1alpha1.Result{Outcome: outcome})
}

// passes reports whether a tested behavior passed; an outdated known failure did.
func passes(outcome v1alpha1.Outcome) bool {
	return outcome == v1alpha1.Passed || outcome == v1alpha1.Outdated
}

// date formats the day of a report.
func date(at time.Time) string { return at.UTC().Format(time.DateOnly) }
