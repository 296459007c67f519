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

// Mutant is one file below mutants/: something small that could go wrong in Kubernetes.
type Mutant struct {
	// Name is the file's name, with its folder: grace/lengthened.
	Name string `json:"-"`
	// Breaks says in one sentence what a cluster with the mutant does.
	Breaks string `json:"breaks"`
	// KilledBy are the ids of behaviors that must fail, or deviate where they are observed ones.
	KilledBy []string `json:"killedBy"`
	// Node says that the mutant shows on a real node only. The suites are then run on one, and only what needs it.
	Node bool `json:"node,omitempty"`
	// Changes are what makes the mutant.
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
var mutantFiles embed.FS

// readMutants reads all mutants, sorted by name.
func readMutants() ([]Mutant, error) {
	var mutants []Mutant
	err := fs.WalkDir(mutantFiles, "mutants", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := mutantFiles.ReadFile(name)
		if err != nil {
			return err
		}
		mutant := Mutant{Name: strings.TrimSuffix(strings.TrimPrefix(name, "mutants/"), ".yaml")}
		if err := yaml.UnmarshalStrict(content, &mutant); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if mutant.Breaks == "" || len(mutant.KilledBy) == 0 || len(mutant.Changes) == 0 {
			return fmt.Errorf("read %s: a mutant needs breaks, killedBy and changes", name)
		}
		mutants = append(mutants, mutant)
		return nil
	})
	return mutants, err
}

// choose takes the mutants whose name matches one of the patterns; all when there is none.
func choose(mutants []Mutant, patterns []string) ([]Mutant, error) {
	if len(patterns) == 0 {
		return mutants, nil
	}
	var chosen []Mutant
	for _, pattern := range patterns {
		var matching []Mutant
		for _, mutant := range mutants {
			matches, err := path.Match(pattern, mutant.Name)
			if err != nil {
				return nil, fmt.Errorf("choose mutants by %q: %w", pattern, err)
			}
			if matches {
				matching = append(matching, mutant)
			}
		}
		if len(matching) == 0 {
			return nil, errors.New("no mutant is named " + pattern + "; -list lists them")
		}
		chosen = append(chosen, matching...)
	}
	return chosen, nil
}

// identifier is the name as a part of Go identifiers.
func (d Mutant) identifier() string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '-' || r == '.' {
			return '_'
		}
		return r
	}, d.Name)
}
