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
	// Copies is the name of a mutant below mutants/ that has the same Breaks and Changes, for one below histories/.
	Copies string `json:"copies,omitempty"`
	// Inject are the faults to inject into an exploration, without which the mutant is not noticed.
	Inject []string `json:"inject,omitempty"`
	// Changes are the changes to the source.
	Changes []Change `json:"changes,omitempty"`
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
		mutant, err := readMutant(folder, strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ".yaml"))
		mutants = append(mutants, mutant)
		return err
	})
	return mutants, err
}

// readMutant reads the mutant of that name.
func readMutant(folder, name string) (Mutant, error) {
	file := path.Join(folder, name+".yaml")
	mutant := Mutant{Name: name}
	content, err := mutantFiles.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(content, &mutant)
	}
	if err == nil && mutant.Copies != "" {
		if mutant.Breaks != "" || len(mutant.Changes) > 0 {
			return Mutant{}, fmt.Errorf("read %s: a copy has the breaks and changes of %s, so it must not have any", file, mutant.Copies)
		}
		var original Mutant
		original, err = readMutant(ofBehaviors, mutant.Copies)
		mutant.Breaks, mutant.Changes = original.Breaks, original.Changes
	}
	if err != nil {
		return Mutant{}, fmt.Errorf("read %s: %w", file, err)
	}
	if mutant.Breaks == "" || len(mutant.KilledBy) == 0 || len(mutant.Changes) == 0 {
		return Mutant{}, fmt.Errorf("read %s: a mutant needs killedBy, and either breaks and changes or copies", file)
	}
	mutant.splitClauses()
	return mutant, nil
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
