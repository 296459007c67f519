package site

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/html"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

var (
	//go:embed page/site.html.tmpl
	markup string
	//go:embed page/site.css
	style string

	layout = template.Must(template.New("site").Funcs(template.FuncMap{
		"seconds": report.Seconds, "behaviors": report.Behaviors, "join": strings.Join,
		"isClaim": func(content any) bool { _, ok := content.(claimPage); return ok },
	}).Parse(markup))
)

// Directories and files of a site.
const (
	claimsDir, behaviorsDir, badgesDir = "claims", "behaviors", "badges"
	indexFile, styleFile               = "index.html", "style.css"
	pageSuffix                         = ".html"
)

// page is the data that every page has.
type page struct {
	// Title is the title, and Root the path to the start page from here.
	Title, Root string
	// Here is the entry of the navigation that the page belongs to.
	Here    string
	Content any
}

// Write writes the pages and the badges to the directory of the site, which is created if necessary. Files are replaced atomically. The error
// names the file that cannot be written.
func (s *Site) Write() error {
	files := map[string][]byte{styleFile: []byte(html.Style() + style)}
	lines := s.lines()
	pages := map[string]page{
		indexFile:        {"Implementations", "", "claims", s.index(lines)},
		"behaviors.html": {"Behaviors", "", "behaviors", s.behaviorList(lines)},
		"changes.html":   {"Changes between versions", "", "changes", changesOf(lines)},
		"latency.html":   {"How long deletions took", "", "latency", latencyOf(lines)},
	}
	for _, line := range lines {
		for i, e := range line.entries {
			pages[filepath.Join(claimsDir, e.slug+pageSuffix)] = page{e.title(), "../", "", s.claimPage(e)}
			for _, profile := range e.claim.Profiles {
				badge := badgeOf(profile, e.remark)
				files[filepath.Join(badgesDir, badgeName(e.slug, profile.Profile))] = badge
				if i == len(line.entries)-1 {
					files[filepath.Join(badgesDir, badgeName(line.slug, profile.Profile))] = badge
				}
			}
		}
	}
	for id, behavior := range s.catalog {
		pages[filepath.Join(behaviorsDir, id+pageSuffix)] = page{id, "../", "", behaviorPageOf(behavior, lines)}
	}
	for name, page := range pages {
		content, err := render(page)
		if err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		files[name] = content
	}
	return write(s.dir, files)
}

func render(page page) ([]byte, error) {
	var content bytes.Buffer
	err := layout.Execute(&content, visible.Value(page))
	return content.Bytes(), err
}

func write(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("create the directory of the site: %w", err)
		}
		if err := maybe.WriteFile(file, files[name], 0o644); err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
	}
	return nil
}

// indexPage is the matrix of implementations, versions and profiles.
type indexPage struct {
	Claims, Behaviors int
	Profiles          []v1alpha1.Profile
	Lines             []indexLine
}

type indexLine struct {
	Subject string
	Rows    []indexRow
}

type indexRow struct {
	Slug, Version, Kubernetes, Date, Remark string
	Cells                                   []indexCell
}

// indexCell is the result of a profile; without a conclusion if it is not claimed.
type indexCell struct {
	Conclusion v1alpha1.ProfileConclusion
	// Passed and Tested are numbers of core and extended behaviors.
	Passed, Tested int
	Skipped        int
}

func (s *Site) index(lines []line) indexPage {
	p := indexPage{Claims: len(s.entries), Behaviors: len(s.catalog), Profiles: v1alpha1.Profiles}
	for _, line := range lines {
		shown := indexLine{Subject: line.subject}
		for _, e := range slices.Backward(line.entries) {
			row := indexRow{
				Slug: e.slug, Version: report.OneLine(e.claim.Implementation.Version, titleLength), Kubernetes: report.OneLine(e.claim.Environment.ServerVersion, titleLength),
				Remark: e.remark, Date: e.claim.End.UTC().Format("2006-01-02"),
			}
			for _, profile := range v1alpha1.Profiles {
				row.Cells = append(row.Cells, cellOf(e.claim, profile))
			}
			shown.Rows = append(shown.Rows, row)
		}
		p.Lines = append(p.Lines, shown)
	}
	return p
}

func cellOf(claim v1alpha1.ConformanceReport, profile v1alpha1.Profile) indexCell {
	for _, result := range claim.Profiles {
		if result.Profile != profile {
			continue
		}
		cell := indexCell{Conclusion: result.Conclusion}
		for _, level := range result.Levels {
			cell.Skipped += level.Skipped
			if level.Level != v1alpha1.Observed {
				cell.Passed, cell.Tested = cell.Passed+level.Passed, cell.Tested+level.Passed+level.Failed
			}
		}
		return cell
	}
	return indexCell{}
}

// claimPage is the page of one claim.
type claimPage struct {
	Claim              v1alpha1.ConformanceReport
	Slug, Date, Remark string
	// Modified is set if the runner contains uncommitted changes.
	Modified bool
	// Differences are those between the catalog of the claim and that of the site.
	Differences []string
	Contact     []string
	Reproduce   string
	Missing     []v1alpha1.FeatureStatus
	Findings    []string
	Profiles    []claimProfile
	// Pages are the behaviors that have a page.
	Pages map[string]bool
}

type claimProfile struct {
	v1alpha1.ProfileResult
	Failures []failure
	Skips    []v1alpha1.ReasonedBehaviors
}

// failure is a behavior that failed or deviated, in a claim.
type failure struct {
	ID, Statement, Title, Slug string
	state
}

func (s *Site) claimPage(e *entry) claimPage {
	p := claimPage{
		Claim: e.claim, Slug: e.slug, Remark: e.remark, Date: e.claim.End.UTC().Format("2 January 2006"),
		Modified: claim.IsModified(e.claim), Differences: e.differences, Pages: map[string]bool{},
		Contact: e.claim.Implementation.Contact, Reproduce: e.claim.Implementation.Reproduce,
	}
	for id := range e.states {
		_, p.Pages[id] = s.catalog[id]
	}
	for _, status := range e.claim.Environment.Features {
		if !status.Present {
			p.Missing = append(p.Missing, status)
		}
	}
	for _, finding := range e.claim.Environment.Preflight {
		if finding.Severity != v1alpha1.OK {
			p.Findings = append(p.Findings, report.FindingLine(finding))
		}
	}
	for _, result := range e.claim.Profiles {
		shown := claimProfile{ProfileResult: result}
		for _, failed := range slices.Concat(result.Failed, result.Deviated) {
			of := failure{ID: failed.ID, state: e.states[failed.ID]}
			if of.comparable {
				of.Statement = s.catalog[failed.ID].Statement
			}
			shown.Failures = append(shown.Failures, of)
		}
		for _, skipped := range result.Skipped {
			shown.Skips = append(shown.Skips, v1alpha1.ReasonedBehaviors{Reason: skipped.Reason, Behaviors: skipped.Behaviors})
		}
		p.Profiles = append(p.Profiles, shown)
	}
	return p
}

// behaviorPage is the page of one behavior.
type behaviorPage struct {
	Behavior v1alpha1.Behavior
	Features string
	Profile  v1alpha1.Profile
	Rows     []behaviorRow
	Failures []failure
}

// behaviorRow is what the newest claim of a subject shows of a behavior.
type behaviorRow struct {
	Subject, Slug, Newest, Since, Kubernetes, Remark string
	state
}

func behaviorPageOf(behavior v1alpha1.Behavior, lines []line) behaviorPage {
	p := behaviorPage{Behavior: behavior, Features: report.Features(behavior.Features), Profile: behavior.Profile()}
	for _, line := range lines {
		newest, first, last := line.since(behavior.ID)
		if last == nil {
			continue
		}
		p.Rows = append(p.Rows, behaviorRow{
			Subject: line.subject, Slug: last.slug, Remark: last.remark, Newest: report.OneLine(last.claim.Implementation.Version, titleLength),
			Since: report.OneLine(first.claim.Implementation.Version, titleLength), Kubernetes: report.OneLine(last.claim.Environment.ServerVersion, titleLength), state: newest,
		})
		for _, e := range slices.Backward(line.entries) {
			if found, ok := e.in(behavior.ID); ok && (found.Outcome == v1alpha1.Failed || found.Outcome == v1alpha1.Deviated) {
				p.Failures = append(p.Failures, failure{ID: behavior.ID, Title: e.title(), Slug: e.slug, state: found})
			}
		}
	}
	return p
}

// behaviorList lists all behaviors, with how many subjects pass each in their newest claim.
type behaviorList struct {
	List []suite
}

type suite struct {
	Name string
	Rows []listRow
}

type listRow struct {
	ID, Statement                     string
	Level                             v1alpha1.Level
	Profile                           v1alpha1.Profile
	Passed, Failed, Deviated, Skipped int
}

func (s *Site) behaviorList(lines []line) behaviorList {
	var list behaviorList
	for _, id := range slices.Sorted(maps.Keys(s.catalog)) {
		behavior := s.catalog[id]
		row := listRow{ID: id, Statement: behavior.Statement, Level: behavior.Level, Profile: behavior.Profile()}
		for _, line := range lines {
			newest, _, _ := line.since(id)
			switch newest.Outcome {
			case v1alpha1.Passed:
				row.Passed++
			case v1alpha1.Failed:
				row.Failed++
			case v1alpha1.Deviated:
				row.Deviated++
			case v1alpha1.Skipped:
				row.Skipped++
			}
		}
		if last := len(list.List) - 1; last < 0 || list.List[last].Name != behavior.Suite() {
			list.List = append(list.List, suite{Name: behavior.Suite()})
		}
		last := &list.List[len(list.List)-1]
		last.Rows = append(last.Rows, row)
	}
	return list
}

// changesPage lists the changes between successive versions.
type changesPage struct {
	Changes []versionChange
}

type versionChange struct {
	Subject, Before, After, Slug string
	Rows                         []change
}

func changesOf(lines []line) changesPage {
	p := changesPage{Changes: []versionChange{}}
	for _, line := range lines {
		for i := len(line.entries) - 1; i > 0; i-- {
			before, after := line.entries[i-1], line.entries[i]
			if rows := changes(before, after); len(rows) > 0 {
				p.Changes = append(p.Changes, versionChange{line.subject, versionsOf(before), versionsOf(after), after.slug, rows})
			}
		}
	}
	return p
}

// versionsOf names the version of a claim, with that of Kubernetes.
func versionsOf(e *entry) string {
	return report.OneLine(e.claim.Implementation.Version+" (Kubernetes "+e.claim.Environment.ServerVersion+")", titleLength)
}

// latencyPage compares how long deletions took in the newest claims, and names what drifted over several versions.
type latencyPage struct {
	Latency []operation
	Drifts  []drift
}

// drift is a figure whose median has changed for good over the claims of a subject.
type drift struct {
	compare.Drift
	// Subject is the subject, Since the version of its first claim with the new median, and Slug names that claim.
	Subject, Since, Slug string
}

type operation struct {
	Name string
	Rows []latencyRow
}

type latencyRow struct {
	Title, Slug string
	v1alpha1.Figure
}

func latencyOf(lines []line) latencyPage {
	var all []operation
	for _, line := range lines {
		e := line.entries[len(line.entries)-1]
		for _, figure := range e.figures {
			name := figures.Name(figure)
			i := slices.IndexFunc(all, func(o operation) bool { return o.Name == name })
			if i < 0 {
				i, all = len(all), append(all, operation{Name: name})
			}
			all[i].Rows = append(all[i].Rows, latencyRow{e.title(), e.slug, figure})
		}
	}
	slices.SortStableFunc(all, func(a, b operation) int { return figures.Order(a.Rows[0].Figure, b.Rows[0].Figure) })
	return latencyPage{append([]operation{}, all...), driftsOf(lines)}
}

func driftsOf(lines []line) []drift {
	var all []drift
	for _, line := range lines {
		var clusters []v1alpha1.Cluster
		for _, e := range line.entries {
			clusters = append(clusters, v1alpha1.Cluster{ServerVersion: e.claim.Environment.ServerVersion, Figures: e.figures})
		}
		for _, found := range compare.Figures(clusters) {
			since := line.entries[found.Since-1]
			all = append(all, drift{found, line.subject, versionsOf(since), since.slug})
		}
	}
	return all
}
