package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// known contains the mutants, the exempt behaviors and the catalog.
type known struct {
	mutants []Mutant
	exempt  map[string]string
	fixes   fixes
	catalog []plan.Behavior
}

// readKnown reads the mutants and the catalog, and checks their consistency.
func readKnown() (known, error) {
	mutants, err := readMutants(ofBehaviors)
	if err != nil {
		return known{}, err
	}
	exempt, err := readExempt()
	if err != nil {
		return known{}, err
	}
	all, err := plan.Make(plan.Selection{Slow: true})
	if err != nil {
		return known{}, err
	}
	clauses, err := readClauses()
	if err != nil {
		return known{}, err
	}
	fixes, err := readFixes()
	if err != nil {
		return known{}, err
	}
	return known{mutants, exempt, fixes, all.Catalog},
		errors.Join(check(mutants, exempt, all.Catalog), clauses.check(mutants, exempt, all.Catalog), fixes.check(mutants), checkReports(mutants))
}

// list prints the chosen mutants, and the behaviors that no mutant names.
func (k known) list(out io.Writer, chosen []Mutant) {
	for _, mutant := range chosen {
		breaks := mutant.Breaks
		if mutant.Fix != 0 {
			breaks += fmt.Sprintf(" Reverses #%d.", mutant.Fix)
		}
		_, _ = fmt.Fprintf(out, "%-44s %s\n", mutant.Name, breaks)
	}
	if missing := unnamed(k.mutants, k.exempt, k.catalog); len(missing) > 0 {
		_, _ = fmt.Fprintf(out, "\nNo mutant names these behaviors (%d):\n  %s\n", len(missing), strings.Join(missing, "\n  "))
	}
}

//go:embed exempt.yaml
var exemptFile []byte

// readExempt reads the behaviors, and the clauses of behaviors, that no mutant can make fail, with the reasons.
func readExempt() (map[string]string, error) {
	exempt := map[string]string{}
	if err := yaml.UnmarshalStrict(exemptFile, &exempt); err != nil {
		return nil, fmt.Errorf("read exempt.yaml: %w", err)
	}
	return exempt, nil
}

// check finds inconsistencies between the mutants, exempt.yaml and the catalog.
func check(mutants []Mutant, exempt map[string]string, catalog []plan.Behavior) error {
	var errs []error
	exists := func(id string) bool {
		return slices.ContainsFunc(catalog, func(b plan.Behavior) bool { return b.ID == id })
	}
	for _, mutant := range mutants {
		for _, id := range mutant.KilledBy {
			if !exists(id) {
				errs = append(errs, fmt.Errorf("%s is to be killed by %s, which is no behavior: see `runner list`", mutant.Name, id))
			}
			if exempt[id] != "" {
				errs = append(errs, fmt.Errorf("%s is to be killed by %s, which exempt.yaml exempts", mutant.Name, id))
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(exempt)) {
		id, _, _ := strings.Cut(entry, "#")
		if !exists(id) {
			errs = append(errs, fmt.Errorf("exempt.yaml has %s, which is no behavior: see `runner list`", entry))
		}
		if strings.TrimSpace(exempt[entry]) == "" {
			errs = append(errs, fmt.Errorf("exempt.yaml has no reason for %s", entry))
		}
	}
	return errors.Join(errs...)
}

// unnamed returns the behaviors that no mutant names and that are not exempt.
func unnamed(mutants []Mutant, exempt map[string]string, catalog []plan.Behavior) []string {
	var ids []string
	for _, behavior := range catalog {
		named := slices.ContainsFunc(mutants, func(d Mutant) bool { return slices.Contains(d.KilledBy, behavior.ID) })
		if !named && exempt[behavior.ID] == "" {
			ids = append(ids, behavior.ID)
		}
	}
	return ids
}
