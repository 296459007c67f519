// Package html writes a report as report.html, a single page without dependencies.
package html

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

var (
	//go:embed page/page.html.tmpl
	markup string
	//go:embed page/page.css
	style string
	//go:embed page/page.js
	script string

	layout = template.Must(template.New("page").Funcs(template.FuncMap{"name": report.OutcomeName}).Parse(markup))
)

// Style returns the style of report.html, which other pages of this project share.
func Style() string { return style }

// Write writes the report as one self-contained page. It works from file://, loads nothing, and has a content security policy that permits
// only its own script and style, by hash. Without scripts the page shows the verdict, the matrix and the figures; with them it filters, and
// draws the timelines.
func Write(w io.Writer, r v1alpha1.Report) error {
	page, err := newPage(visible.Value(r))
	if err != nil {
		return fmt.Errorf("make report.html: %w", err)
	}
	if err := layout.Execute(w, page); err != nil {
		return fmt.Errorf("write report.html: %w", err)
	}
	return nil
}

// page is the data of the template.
type page struct {
	Policy string
	Style  template.CSS
	Script template.JS
	Data   pageData

	Verdict verdict
	// Kubectl is the verdict on kubectl; nil when it was not tested.
	Kubectl *verdict
	Facts   []fact
	// Counts are those of the outcomes that there are, on all clusters.
	Counts   []count
	Levels   []v1alpha1.Level
	Clusters []clusterRow
	// Nodes is set when a cluster has nodes.
	Nodes  bool
	Groups []group
	// Dense is set for many clusters: their names are vertical and cells contain no times.
	Dense    bool
	Problems []problem
	// MoreProblems is the number of problems that are not listed above the matrix.
	MoreProblems int
	Plots        []plot
	Ticks        []tick
	Preflight    []preflightOf
	// Untested are the selected behaviors that were not tested, by reason, and Unselected those that were not selected.
	Untested, Unselected []reasonRow
	Legend               legend
	// LeftOut are the resources that were left out of a run of all resources, by reason.
	LeftOut []reasonRow
}

// pageData is the data of the script.
type pageData struct {
	Clusters []string `json:"clusters"`
	// Names are the names of outcomes for people.
	Names   map[v1alpha1.Outcome]string `json:"names"`
	Details []packed                    `json:"details"`
}

// verdict is a verdict with the CSS class of its conclusion.
type verdict struct {
	v1alpha1.Verdict
	Slug string
}

type fact struct{ Name, Value string }

type count struct {
	Outcome v1alpha1.Outcome
	Number  int
}

type clusterRow struct {
	Name, Version, Runtime, Problem, Warning, LeftBehind, Kept string
	Bars                                                       []bar
	// Counts are those of the page's outcomes.
	Counts []count
}

// bar is a segment of a cluster's bar, in percent of its width.
type bar struct {
	Outcome     v1alpha1.Outcome
	From, Width float64
}

type group struct {
	Suite, Topic string
	Rows         []row
}

type row struct {
	Number          int
	ID, Statement   string
	Level, Features string
	Since           string
	Cells           []matrixCell
}

type matrixCell struct {
	Outcome v1alpha1.Outcome
	Took    string
	// Icon is set when the symbol of the outcome is an icon. The style draws those of frequent outcomes, because thousands of icons would
	// take half of the time to open the page.
	Icon bool
}

// problem is the behaviors with one outcome and one cause.
type problem struct {
	Outcome v1alpha1.Outcome
	// ID and Statement are those of the behavior, or of the first of several.
	ID, Statement     string
	Message, Location string
	Cells             []cellRef
	// Behaviors is the number of behaviors in words, empty for one.
	Behaviors string
	// Where is the cluster, or the number of clusters.
	Where string
}

// cellRef names a cell of the matrix.
type cellRef struct {
	Row, Column int
	ID, Cluster string
}

// legend explains the words of the page.
type legend struct {
	Outcomes         []explained[v1alpha1.Outcome]
	Levels, Features []explained[string]
}

// explained is a word and what it means.
type explained[T any] struct {
	Word    T
	Meaning string
}

// reasonRow is a reason with its behaviors or resources.
type reasonRow struct {
	Reason string
	Number int
	Of     []string
}

// preflightOf is the preflight of a cluster.
type preflightOf struct {
	Cluster  string
	Findings []findingRow
}

// findingRow is a finding, with the behaviors that are skipped because of it.
type findingRow struct {
	Check, Severity, Cause, Effect, Remedy string
	Behaviors                              []string
}

const (
	// denseFrom is the number of clusters from which the matrix is dense.
	denseFrom = 7
	// maxProblems limits the problems above the matrix, which contains all of them.
	maxProblems = 40
)

func newPage(r v1alpha1.Report) (*page, error) {
	p := &page{
		Style: template.CSS(style), Script: template.JS(script), //nolint:gosec // both are files of this package
		Policy: policy(), Levels: v1alpha1.Levels, Dense: len(r.Clusters) >= denseFrom,
	}
	p.addVerdicts(r)
	p.addFacts(r)
	p.addCounts(r)
	p.addLegend()
	for _, cluster := range r.Clusters {
		p.Nodes = p.Nodes || cluster.NodeRuntime != ""
		p.Clusters = append(p.Clusters, p.newClusterRow(cluster))
		p.Data.Clusters = append(p.Data.Clusters, cluster.Name)
	}
	matrix := matrixOf(r)
	p.addGroups(matrix)
	p.addProblems(r, matrix)
	p.addPreflight(r)
	p.addReasons(r)
	p.addLeftOut(r)
	p.addPlots(r)

	var err error
	p.Data.Details, err = packDetails(matrix.cells, detailsBudget)
	return p, err
}

func (p *page) addVerdicts(r v1alpha1.Report) {
	for _, of := range r.Verdicts {
		shown := verdict{of, strings.ReplaceAll(string(of.Conclusion), " ", "-")}
		if of.Subject == v1alpha1.SubjectKubectl {
			p.Kubectl = &shown
		} else {
			p.Verdict = shown
		}
	}
}

// policy returns the content security policy, which permits only the page's own script and style.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
		hash(script), hash(style))
}

// hash returns the source of a content security policy for an inline text.
func hash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p *page) addFacts(r v1alpha1.Report) {
	if !r.Start.IsZero() {
		p.Facts = append(p.Facts, fact{"Date", r.Start.UTC().Format("2 January 2006, 15:04 UTC")})
	}
	if r.End.After(r.Start) {
		p.Facts = append(p.Facts, fact{"Took", report.Seconds(r.End.Sub(r.Start).Round(100 * time.Millisecond).Seconds())})
	}
	p.Facts = append(p.Facts, fact{"Run", r.RunID}, fact{"Runner", r.Runner})
	for _, version := range report.KubectlVersions(r) {
		p.Facts = append(p.Facts, fact{"kubectl", version})
	}
	if r.Shard != "" {
		p.Facts = append(p.Facts, fact{"Shard", r.Shard})
	}
	if r.Strict {
		p.Facts = append(p.Facts, fact{"Strict", "deviations fail the run"})
	}
}

func (p *page) addPreflight(r v1alpha1.Report) {
	for _, cluster := range r.Clusters {
		of := preflightOf{Cluster: cluster.Name}
		for _, finding := range cluster.Preflight {
			of.Findings = append(of.Findings, findingRow{
				Check: finding.Check, Severity: string(finding.Severity), Cause: finding.Cause,
				Effect: finding.Effect, Remedy: finding.Remedy, Behaviors: finding.Behaviors,
			})
		}
		if len(of.Findings) > 0 {
			p.Preflight = append(p.Preflight, of)
		}
	}
}

func (p *page) addCounts(r v1alpha1.Report) {
	for _, outcome := range v1alpha1.Outcomes {
		if n := r.Counts[outcome]; n > 0 {
			p.Counts = append(p.Counts, count{Outcome: outcome, Number: n})
		}
	}
}

func (p *page) newClusterRow(cluster v1alpha1.Cluster) clusterRow {
	c := clusterRow{
		Name: cluster.Name, Version: cluster.ServerVersion, Runtime: cluster.NodeRuntime,
		Warning: cluster.Warning, LeftBehind: cluster.LeftBehind, Kept: cluster.Kept,
	}
	if cluster.Problem != "" {
		c.Problem = fmt.Sprintf("could not be tested: %s errored", report.Behaviors(cluster.Counts[v1alpha1.Errored]))
	}
	from := 0.0
	for _, total := range p.Counts {
		n := cluster.Counts[total.Outcome]
		c.Counts = append(c.Counts, count{Outcome: total.Outcome, Number: n})
		if n > 0 {
			width := 100 * float64(n) / float64(len(cluster.Results))
			c.Bars = append(c.Bars, bar{total.Outcome, from, width})
			from += width
		}
	}
	return c
}

// matrix contains the results by behavior and cluster; a cell is nil when a cluster has no result for the behavior.
type matrix struct {
	ids   []string
	cells [][]*v1alpha1.Result
}

func matrixOf(r v1alpha1.Report) matrix {
	numbers := map[string]int{}
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			numbers[result.ID] = 0
		}
	}
	m := matrix{ids: slices.Sorted(maps.Keys(numbers))}
	for i, id := range m.ids {
		numbers[id] = i
		m.cells = append(m.cells, make([]*v1alpha1.Result, len(r.Clusters)))
	}
	for c, cluster := range r.Clusters {
		for i := range cluster.Results {
			m.cells[numbers[cluster.Results[i].ID]][c] = &cluster.Results[i]
		}
	}
	return m
}

// addGroups sorts the behaviors by suite and topic; behaviors without a topic come first.
func (p *page) addGroups(m matrix) {
	for number, results := range m.cells {
		first := *results[slices.IndexFunc(results, func(r *v1alpha1.Result) bool { return r != nil })]
		behavior := row{
			Number: number, ID: first.ID, Statement: report.OneLine(first.Statement, messageInPage),
			Level: string(first.Level), Features: report.Features(first.Features), Since: first.Since,
		}
		for _, result := range results {
			behavior.Cells = append(behavior.Cells, p.newCell(result))
		}
		into := p.group(first.Suite(), first.Topic())
		into.Rows = append(into.Rows, behavior)
	}
	slices.SortStableFunc(p.Groups, func(a, b group) int {
		return cmp.Or(strings.Compare(a.Suite, b.Suite), strings.Compare(a.Topic, b.Topic))
	})
}

// group returns the group of a suite and topic, and creates it if necessary.
func (p *page) group(suite, topic string) *group {
	i := slices.IndexFunc(p.Groups, func(g group) bool { return g.Suite == suite && g.Topic == topic })
	if i < 0 {
		i = len(p.Groups)
		p.Groups = append(p.Groups, group{Suite: suite, Topic: topic})
	}
	return &p.Groups[i]
}

// absent is the outcome of a behavior without a result on a cluster.
const absent v1alpha1.Outcome = "absent"

func (p *page) newCell(result *v1alpha1.Result) matrixCell {
	if result == nil {
		return matrixCell{Outcome: absent}
	}
	frequent := []v1alpha1.Outcome{v1alpha1.Passed, v1alpha1.Skipped, v1alpha1.Filtered}
	c := matrixCell{Outcome: result.Outcome, Icon: !slices.Contains(frequent, result.Outcome)}
	if !p.Dense && result.Seconds > 0 {
		c.Took = report.Seconds(result.Seconds)
	}
	return c
}

// addProblems lists failures, errors and deviations by outcome and cause. The reason why a cluster could not be tested is in the verdict,
// with the number of its behaviors.
func (p *page) addProblems(r v1alpha1.Report, m matrix) {
	for _, outcome := range []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Errored, v1alpha1.Known, v1alpha1.Deviated} {
		for _, group := range report.Causes(r, outcome) {
			p.Problems = append(p.Problems, newProblem(r, m, group))
		}
	}
	if p.MoreProblems = len(p.Problems) - maxProblems; p.MoreProblems > 0 {
		p.Problems = p.Problems[:maxProblems]
	}
}

// newProblem returns the problem of results with one cause. That of several behaviors has the cause in place of a message.
func newProblem(r v1alpha1.Report, m matrix, group report.CauseGroup) problem {
	first := group.Results[0]
	e := detailsOf(first.Result, noTimelines)
	t := problem{
		Outcome: first.Outcome, ID: first.ID, Statement: report.OneLine(first.Statement, messageInPage), Message: e.Message, Location: e.Location,
	}
	columns := sets.New[int]()
	for _, result := range group.Results {
		row, _ := slices.BinarySearch(m.ids, result.ID)
		columns.Insert(result.Cluster)
		t.Cells = append(t.Cells, cellRef{row, result.Cluster, result.ID, r.Clusters[result.Cluster].Name})
	}
	if len(group.Behaviors) > 1 {
		t.Behaviors, t.Message, t.Location = report.Behaviors(len(group.Behaviors)), group.Cause.Cause, ""
	}
	t.Where = t.Cells[0].Cluster
	if columns.Len() > 1 {
		t.Where = fmt.Sprintf("%d clusters", columns.Len())
	}
	return t
}

// addReasons groups by reason what was not tested, and what was not selected.
func (p *page) addReasons(r v1alpha1.Report) {
	p.Untested = reasonRows(report.ByReason(r.Results(), v1alpha1.Skipped, v1alpha1.Interrupted))
	p.Unselected = reasonRows(report.ByReason(r.Results(), v1alpha1.Filtered))
}

func reasonRows(groups []report.ReasonGroup) []reasonRow {
	var rows []reasonRow
	for _, group := range groups {
		ids := slices.Compact(slices.Sorted(slices.Values(group.IDs)))
		rows = append(rows, reasonRow{report.OneLine(group.Reason, messageInPage), len(group.IDs), ids})
	}
	return rows
}

// addLegend explains outcomes, levels and features, and names outcomes for the script.
func (p *page) addLegend() {
	p.Data.Names = map[v1alpha1.Outcome]string{}
	for _, outcome := range v1alpha1.Outcomes {
		p.Data.Names[outcome] = report.OutcomeName(outcome)
		p.Legend.Outcomes = append(p.Legend.Outcomes, explained[v1alpha1.Outcome]{outcome, report.OutcomeMeanings[outcome]})
	}
	for _, level := range v1alpha1.Levels {
		p.Legend.Levels = append(p.Legend.Levels, explained[string]{string(level), report.LevelMeanings[level]})
	}
	for _, feature := range v1alpha1.Features {
		p.Legend.Features = append(p.Legend.Features, explained[string]{string(feature), report.FeatureMeanings[feature]})
	}
}

// addLeftOut groups the resources that were left out by reason, in the order of the report.
func (p *page) addLeftOut(r v1alpha1.Report) {
	for _, left := range r.LeftOut {
		reason, resource := report.OneLine(left.Reason, messageInPage), left.Resource
		i := slices.IndexFunc(p.LeftOut, func(row reasonRow) bool { return row.Reason == reason })
		if i < 0 {
			i = len(p.LeftOut)
			p.LeftOut = append(p.LeftOut, reasonRow{Reason: reason})
		}
		if row := &p.LeftOut[i]; !slices.Contains(row.Of, resource) { // it may be on several clusters
			row.Number, row.Of = row.Number+1, append(row.Of, resource)
		}
	}
}
