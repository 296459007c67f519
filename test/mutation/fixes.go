package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:embed fixes.yaml
var fixesFile []byte

// fixes are the fixes of Kubernetes that concern deletion, by the release that first had them: the number of the pull request in
// kubernetes/kubernetes, and why no mutant reverses it, or nothing if one does.
type fixes map[string]map[int]string

func readFixes() (fixes, error) {
	all := fixes{}
	if err := yaml.UnmarshalStrict(fixesFile, &all); err != nil {
		return nil, fmt.Errorf("read fixes.yaml: %w", err)
	}
	return all, nil
}

// check finds fixes that are listed twice, that neither a mutant reverses nor a reason explains, and those that have both.
func (f fixes) check(mutants []Mutant) error {
	var errs []error
	seen := map[int]string{}
	for _, release := range slices.Sorted(maps.Keys(f)) {
		for _, number := range slices.Sorted(maps.Keys(f[release])) {
			if first, ok := seen[number]; ok {
				errs = append(errs, fmt.Errorf("fixes.yaml has %d in %s and in %s", number, first, release))
			}
			seen[number] = release
			reversed := slices.ContainsFunc(mutants, func(m Mutant) bool { return m.Fix == number })
			switch reason := f[release][number]; {
			case reversed && reason != "":
				errs = append(errs, fmt.Errorf("fixes.yaml has a reason why no mutant reverses %d, but one does", number))
			case !reversed && reason == "":
				errs = append(errs, fmt.Errorf("no mutant reverses the fix %d; fixes.yaml must have a reason", number))
			}
		}
	}
	return errors.Join(errs...)
}

// reversing returns the mutants that reverse the fix of a pull request.
func (f fixes) reversing(mutants []Mutant, number int) ([]Mutant, error) {
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m Mutant) bool { return m.Fix != number })
	if len(chosen) > 0 {
		return chosen, nil
	}
	for _, numbers := range f {
		if reason := numbers[number]; reason != "" {
			return nil, fmt.Errorf("no mutant reverses the fix %d: %s", number, reason)
		}
	}
	return nil, fmt.Errorf("no mutant reverses the fix %d; -list lists those that reverse one", number)
}

// encodeFixes encodes the fixes that each behavior notices: the numbers of pull requests, by the behavior's id.
func encodeFixes(mutants []Mutant) ([]byte, error) {
	noticed := map[string][]int{}
	for _, mutant := range mutants {
		for _, id := range mutant.KilledBy {
			if mutant.Fix != 0 && !slices.Contains(noticed[id], mutant.Fix) {
				noticed[id] = append(noticed[id], mutant.Fix)
			}
		}
	}
	for _, numbers := range noticed {
		slices.Sort(numbers)
	}
	content, err := json.MarshalIndent(noticed, "", "  ")
	return append(content, '\n'), err
}
