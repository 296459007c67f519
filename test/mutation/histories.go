package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/framework/explore"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	// historiesFolder is where the mutants of histories are built, below the repository's root.
	historiesFolder = "bin/histories"
	// exploringTime is how long a mutant may stay unnoticed.
	exploringTime = 5 * time.Minute
)

// search is one exploration of a mutant.
type search struct {
	seed   int
	took   time.Duration
	failed []string
}

// exploreHistories explores the chosen mutants of histories, and an unharmed cluster, with some seeds each, and prints a table.
func (o options) exploreHistories(ctx context.Context) error {
	mutants, err := readMutants(ofHistories)
	if err != nil {
		return err
	}
	chosen, err := choose(mutants, o.patterns)
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(historiesFolder)
	if err != nil {
		return err
	}
	recipe, err := recipeOf(ctx, mutants)
	if err != nil {
		return err
	}
	laboratory := laboratory{folder: folder}
	if err := laboratory.build(ctx, recipe); err != nil {
		return err
	}
	fmt.Printf("%-36s %6s %9s %9s  %s\n", "MUTANT", "FOUND", "MEAN", "LONGEST", "PROPERTIES")
	missed := 0
	for _, mutant := range append([]Mutant{{Name: "none"}}, chosen...) {
		searches, err := laboratory.searches(ctx, mutant, o.seeds)
		if err != nil {
			return err
		}
		fmt.Println(row(mutant, searches))
		missed += missing(mutant, searches)
	}
	if missed > 0 {
		return fmt.Errorf("%d searches did not end as they should (reports in %s)", missed, laboratory.path("runs"))
	}
	return nil
}

func (l laboratory) searches(ctx context.Context, mutant Mutant, seeds int) ([]search, error) {
	var searches []search
	scenario := scenarioOf(mutant)
	for seed := range seeds {
		dir := l.path("runs", mutant.Name, strconv.Itoa(seed))
		if err := errors.Join(os.RemoveAll(dir), l.prepare(dir, mutant)); err != nil {
			return nil, err
		}
		began := time.Now()
		whole, err := runnertest.Run(ctx, filepath.Join(dir, "runner"), filepath.Join(dir, "reports"), "explore", "--provider", "embedded",
			"--scenario", string(scenario), "--for", exploringTime.String(), "--seed", strconv.Itoa(1000*seed))
		if err != nil {
			return nil, err
		}
		failed := slices.DeleteFunc(missed(whole), func(id string) bool { return isObserved(id) && !slices.Contains(mutant.KilledBy, id) })
		searches = append(searches, search{seed, time.Since(began), failed})
	}
	return searches, nil
}

// scenarioOf returns the scenario that checks what notices a mutant; that of objects without one.
func scenarioOf(mutant Mutant) explore.Scenario {
	for _, scenario := range explore.Scenarios {
		for _, id := range mutant.KilledBy {
			if slices.ContainsFunc(scenario.Properties(), func(p *history.Property) bool { return p.ID == id }) {
				return scenario
			}
		}
	}
	return explore.Objects
}

// isObserved reports whether upstream does not promise a property, so that a deviation shows no mutant.
func isObserved(id string) bool {
	return slices.ContainsFunc(explore.Scenarios, func(scenario explore.Scenario) bool {
		return slices.ContainsFunc(scenario.Properties(), func(p *history.Property) bool { return p.ID == id && p.Observed })
	})
}

// row is a line of the table.
func row(mutant Mutant, searches []search) string {
	found, properties := 0, []string{}
	var total, longest time.Duration
	for _, search := range searches {
		if len(search.failed) > 0 {
			found++
			total, longest = total+search.took, max(longest, search.took)
			properties = append(properties, search.failed...)
		}
	}
	slices.Sort(properties)
	return fmt.Sprintf("%-36s %6s %9s %9s  %s", mutant.Name, fmt.Sprintf("%d/%d", found, len(searches)),
		(total / time.Duration(max(found, 1))).Round(time.Second), longest.Round(time.Second), strings.Join(slices.Compact(properties), ", "))
}

// missing counts the searches that missed the mutant; without one, those that found something.
func missing(mutant Mutant, searches []search) int {
	count := 0
	for _, search := range searches {
		if (len(search.failed) == 0) != (len(mutant.KilledBy) == 0) {
			count++
		}
	}
	return count
}
