package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Mutant is one file below mutants/ or histories/: a small fault in Kubernetes.
type Mutant struct {
	// Name is the file's path below mutants/ without extension: grace/lengthened.
	Name string `json:"-"`
	// Breaks describes the faulty behavior in one sentence.
	Breaks string `json:"breaks"`
	// KilledBy are the ids of behaviors that must fail, or deviate if they are Observed; below histories/ those of properties. The file
	// can have id#n instead, where the mutant breaks the n-th clause of the statement in clauses.yaml.
	KilledBy []string `json:"killedBy"`
	// Clauses are the entries of KilledBy that name a clause, as the file has them: finalizers.held#2.
	Clauses []string `json:"-"`
	// Fix is the number of the pull request in kubernetes/kubernetes that the mutant reverses; 0 for a fault that Kubernetes never had.
	Fix int `json:"fix,omitempty"`
	// Reports are public reports of such a fault, as OWNER/REPOSITORY#NUMBER; kubernetes#NUMBER for those of kubernetes/kubernetes.
	Reports []string `json:"reports,omitempty"`
	// Node is set when the fault shows only on a real node. Only behaviors that require a node are then run, with a node.
	Node bool `json:"node,omitempty"`
	// OwnCluster is why the mutant cannot share a running cluster with others: its change acts only at start, or leaves something behind.
	OwnCluster string `json:"ownCluster,omitempty"`
	// Changes are the changes to the source.
	Changes []Change `json:"changes"`
}

// Change replaces some lines of a function. Indentation is ignored.
type Change struct {
	// File is the import path of the package and the name of the file: k8s.io/apiserver/pkg/registry/rest/delete.go.
	File string `json:"file"`
	// Function is the name of the function to change.
	Function string `json:"function"`
	// Old are lines that occur once in the function.
	Old string `json:"old"`
	// New are the lines that replace them.
	New string `json:"new"`
}

//go:embed mutants histories
var mutantFiles embed.FS

// The folders with mutants: those that behaviors kill, and those of concurrency and memory that `runner explore` finds.
const (
	ofBehaviors = "mutants"
	ofHistories = "histories"
)

// readMutants reads all mutants of a folder, sorted by name.
func readMutants(folder string) ([]Mutant, error) {
	var mutants []Mutant
	err := fs.WalkDir(mutantFiles, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := mutantFiles.ReadFile(name)
		if err != nil {
			return err
		}
		mutant := Mutant{Name: strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ".yaml")}
		if err := yaml.UnmarshalStrict(content, &mutant); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if mutant.Breaks == "" || len(mutant.KilledBy) == 0 || len(mutant.Changes) == 0 {
			return fmt.Errorf("read %s: a mutant needs breaks, killedBy and changes", name)
		}
		mutant.splitClauses()
		mutants = append(mutants, mutant)
		return nil
	})
	return mutants, err
}

// splitClauses moves what names a clause to Clauses, and leaves each id once.
func (d *Mutant) splitClauses() {
	var ids []string
	for _, entry := range d.KilledBy {
		id, _, ok := strings.Cut(entry, "#")
		if ok {
			d.Clauses = append(d.Clauses, entry)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	d.KilledBy = ids
}

// choose returns the mutants whose name matches one of the patterns; all without patterns.
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

// identifier returns the name as a part of Go identifiers.
func (d Mutant) identifier() string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '-' || r == '.' {
			return '_'
		}
		return r
	}, d.Name)
}
