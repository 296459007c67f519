package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

//go:embed record.md.tmpl
var recordTemplate string

//go:embed released.yaml
var releasedFile []byte

// released is a fault of a released version.
type released struct {
	// Fault is what happens.
	Fault string `json:"fault"`
	// Version is what has the fault: kubectl 1.37.2.
	Version string `json:"version"`
	// Report is a public report of it, as Mutant.Reports has them, or a heading of docs/upstream.md.
	Report string `json:"report"`
	// NoticedBy are behaviors and properties.
	NoticedBy []string `json:"noticedBy"`
	// Command shows the fault.
	Command string `json:"command"`
}

func readReleased() ([]released, error) {
	var all []released
	if err := yaml.UnmarshalStrict(releasedFile, &all); err != nil {
		return nil, fmt.Errorf("read released.yaml: %w", err)
	}
	for _, fault := range all {
		if fault.Fault == "" || fault.Version == "" || fault.Report == "" || len(fault.NoticedBy) == 0 || fault.Command == "" {
			return nil, fmt.Errorf("released.yaml: a fault needs fault, version, report, noticedBy and command: %+v", fault)
		}
	}
	return all, nil
}

// issue matches the name of a public report.
var issue = regexp.MustCompile(`^(?:([\w.-]+/[\w.-]+)|kubernetes)#(\d+)$`)

// linkOf returns the link to a public report, or to a heading of docs/upstream.md.
func linkOf(report string) string {
	parts := issue.FindStringSubmatch(report)
	if parts == nil {
		anchor := strings.ReplaceAll(regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(report), ""), " ", "-")
		return fmt.Sprintf("[%s](upstream.md#%s)", report, anchor)
	}
	repository := parts[1]
	if repository == "" {
		repository = "kubernetes/kubernetes"
	}
	return fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", report, repository, parts[2])
}

// fixOf is a fix in the record.
type fixOf struct {
	Release string
	Number  int
	// Mutants reverse it, or Reason is why none does.
	Mutants []Mutant
	Reason  string
}

// The files that are generated from the mutants, relative to the repository's root.
const (
	fixesOfBehaviors = "internal/engine/plan/fixes.json"
	trackRecord      = "docs/track-record.md"
)

// write writes the files that are generated from the mutants.
func (k known) write() error {
	table, err := encodeFixes(k.mutants)
	if err != nil {
		return err
	}
	record, err := k.record()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(fixesOfBehaviors, table, 0o644), os.WriteFile(trackRecord, record, 0o644))
}

// record returns the content of docs/track-record.md: the faults of released versions, the mutants with public reports, and all fixes.
func (k known) record() ([]byte, error) {
	faults, err := readReleased()
	if err != nil {
		return nil, err
	}
	data := struct {
		Released []released
		Reported []Mutant
		Reversed []fixOf
		Others   []fixOf
	}{Released: faults}
	for _, mutant := range k.mutants {
		if len(mutant.Reports) > 0 {
			data.Reported = append(data.Reported, mutant)
		}
	}
	for _, release := range slices.Sorted(maps.Keys(k.fixes)) {
		for _, number := range slices.Sorted(maps.Keys(k.fixes[release])) {
			fix := fixOf{Release: release, Number: number, Reason: k.fixes[release][number]}
			if fix.Reason != "" {
				data.Others = append(data.Others, fix)
				continue
			}
			fix.Mutants, _ = k.fixes.reversing(k.mutants, number) // check has found one
			data.Reversed = append(data.Reversed, fix)
		}
	}
	parsed, err := template.New("record").Funcs(template.FuncMap{
		"link": linkOf,
		"ids":  func(ids []string) string { return strings.Join(ids, ", ") },
		"cell": func(text string) string { return strings.ReplaceAll(text, "|", `\|`) },
	}).Parse(recordTemplate)
	if err != nil {
		return nil, err
	}
	var written bytes.Buffer
	err = parsed.Execute(&written, data)
	return written.Bytes(), err
}

// checkReports finds reports in another form than issue.
func checkReports(mutants []Mutant) error {
	var errs []error
	for _, mutant := range mutants {
		for _, report := range mutant.Reports {
			if !issue.MatchString(report) {
				errs = append(errs, fmt.Errorf("mutant %s: the report %q is not OWNER/REPOSITORY#NUMBER or kubernetes#NUMBER", mutant.Name, report))
			}
		}
	}
	return errors.Join(errs...)
}
