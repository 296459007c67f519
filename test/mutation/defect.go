package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Defect is one file below mutants/: something small that could go wrong in Kubernetes.
type Defect struct {
	// Name is the file's name, with its folder: grace/lengthened.
	Name string `json:"-"`
	// Breaks says in one sentence what a cluster with the defect does.
	Breaks string `json:"breaks"`
	// Noticed are the ids of behaviours that must fail, or deviate where they are observed ones.
	Noticed []string `json:"noticed"`
	// Node says that the defect shows on a real node only. The suites are then run on one, and only what needs it.
	Node bool `json:"node,omitempty"`
	// Changes are what makes the defect.
	Changes []Change `json:"changes"`
}

// Change replaces some lines of a function. White space at the ends of lines does not count.
type Change struct {
	// File is the import path of the package and the file's name: k8s.io/apiserver/pkg/registry/rest/delete.go.
	File string `json:"file"`
	// Function is the name of the function that is changed.
	Function string `json:"function"`
	// Old are lines that occur once in the function.
	Old string `json:"old"`
	// New are the lines that stand there instead.
	New string `json:"new"`
}

//go:embed mutants
var planted embed.FS

// readDefects reads all defects, sorted by name.
func readDefects() ([]Defect, error) {
	var defects []Defect
	err := fs.WalkDir(planted, "mutants", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := planted.ReadFile(name)
		if err != nil {
			return err
		}
		defect := Defect{Name: strings.TrimSuffix(strings.TrimPrefix(name, "mutants/"), ".yaml")}
		if err := yaml.UnmarshalStrict(content, &defect); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if defect.Breaks == "" || len(defect.Noticed) == 0 || len(defect.Changes) == 0 {
			return fmt.Errorf("read %s: a defect says what it breaks, by what it is noticed and what it changes", name)
		}
		defects = append(defects, defect)
		return nil
	})
	return defects, err
}

// choose takes the defects whose name matches one of the patterns; all when there is none.
func choose(defects []Defect, patterns []string) ([]Defect, error) {
	if len(patterns) == 0 {
		return defects, nil
	}
	var chosen []Defect
	for _, pattern := range patterns {
		var matching []Defect
		for _, defect := range defects {
			matches, err := path.Match(pattern, defect.Name)
			if err != nil {
				return nil, fmt.Errorf("choose defects by %q: %w", pattern, err)
			}
			if matches {
				matching = append(matching, defect)
			}
		}
		if len(matching) == 0 {
			return nil, errors.New("no defect is named " + pattern + "; -list lists them")
		}
		chosen = append(chosen, matching...)
	}
	return chosen, nil
}

// identifier is the name as a part of Go identifiers.
func (d Defect) identifier() string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '-' || r == '.' {
			return '_'
		}
		return r
	}, d.Name)
}
