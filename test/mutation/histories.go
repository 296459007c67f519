package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	// historiesFolder is where the mutants of histories are built, below the repository's root.
	historiesFolder = "bin/histories"
	// exploringTime is how long a mutant may stay unnoticed.
	exploringTime = 5 * time.Minute
	// observedTime is the same for a mutant that only observed properties show, because an exploration goes on when one of these fails.
	observedTime = 2 * time.Minute
)

// search is one exploration of a mutant: the properties that failed, and how long it took to find the first.
type search struct {
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
	table := o.heading()
	ctx, end := context.WithCancel(ctx)
	searching := laboratory.begin(ctx, append(chosen, Mutant{Name: "none"}), o) // the last, because it takes all the time there is
	defer func() {
		end()
		for _, mutant := range searching {
			mutant.left.Wait()
		}
	}()
	for _, mutant := range searching {
		mutant.left.Wait()
		if err := errors.Join(mutant.errs...); err != nil {
			return err
		}
		found := detectionsOf(mutant.Mutant, mutant.searches)
		fmt.Println(found)
		table += found.markdown()
		if missed := missing(mutant.Mutant, mutant.searches); missed > 0 {
			return fmt.Errorf("%s: %d of %d searches did not end as they should (reports in %s)",
				mutant.Name, missed, len(mutant.searches), laboratory.path("runs", mutant.Name))
		}
	}
	if len(o.patterns) > 0 {
		return nil
	}
	fmt.Println("wrote", historiesDocument)
	return os.WriteFile(historiesDocument, []byte(table), 0o644)
}

// begun are the searches of a mutant with several seeds, and left counts those that have not ended.
type begun struct {
	Mutant
	searches []search
	errs     []error
	left     sync.WaitGroup
}

// begin begins the searches of mutants in their order, those of the next one while the last ones of the one before go on.
func (l laboratory) begin(ctx context.Context, mutants []Mutant, o options) []*begun {
	all := make([]*begun, len(mutants))
	for i, mutant := range mutants {
		seeds := o.seedsFor(mutant)
		all[i] = &begun{Mutant: mutant, searches: make([]search, seeds), errs: make([]error, seeds)}
		all[i].left.Add(seeds)
	}
	go func() {
		var group errgroup.Group
		group.SetLimit(o.explorations())
		for _, mutant := range all {
			for seed := range mutant.searches {
				group.Go(func() error {
					defer mutant.left.Done()
					whole, err := l.explore(ctx, mutant.Mutant, seed, o.again)
					mutant.searches[seed], mutant.errs[seed] = searchOf(whole, mutant.Mutant), err
					return nil
				})
			}
		}
	}()
	return all
}

// seedsFor returns with how many seeds a mutant is explored; without a mutant at least with one for each scenario.
func (o options) seedsFor(mutant Mutant) int {
	if len(mutant.KilledBy) > 0 {
		return o.seeds
	}
	return max(o.seeds, len(withoutOperator()))
}

// withoutOperator are the scenarios that need no operator.
func withoutOperator() []*exploration.Scenario {
	return slices.DeleteFunc(slices.Clone(scenarios.All), func(s *exploration.Scenario) bool { return s == scenarios.Operator })
}

// explore explores a mutant. With again it does not repeat what the same binaries have reported before.
func (l laboratory) explore(ctx context.Context, mutant Mutant, seed int, again bool) (v1alpha1.Report, error) {
	dir := l.path("runs", mutant.Name, strconv.Itoa(seed))
	if again {
		if whole, known := l.reportIn(dir); known {
			return whole, nil
		}
	}
	if err := errors.Join(ctx.Err(), os.RemoveAll(dir), l.prepare(dir, mutant)); err != nil {
		return v1alpha1.Report{}, err
	}
	arguments := []string{"explore", "--provider", "embedded", "--scenario", scenarioOf(mutant, seed).Name,
		"--for", timeFor(mutant).String(), "--reduce-for", "0", "--seed", strconv.Itoa(1000 * seed)}
	for _, fault := range mutant.Inject {
		arguments = append(arguments, "--inject", fault)
	}
	return runnertest.Run(ctx, filepath.Join(dir, "runner"), filepath.Join(dir, "reports"), arguments...)
}

// searchOf returns what a search has found. Deviations that upstream also shows do not count.
func searchOf(whole v1alpha1.Report, mutant Mutant) search {
	found := search{failed: slices.DeleteFunc(missed(whole), func(id string) bool { return isObserved(id) && !slices.Contains(mutant.KilledBy, id) })}
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			if took := time.Duration(result.Seconds * float64(time.Second)); slices.Contains(found.failed, result.ID) && (found.took == 0 || took < found.took) {
				found.took = took
			}
		}
	}
	return found
}

// timeFor returns how long a mutant is explored.
func timeFor(mutant Mutant) time.Duration {
	if len(mutant.KilledBy) > 0 && !slices.ContainsFunc(mutant.KilledBy, func(id string) bool { return !isObserved(id) }) {
		return observedTime
	}
	return exploringTime
}

// scenarioOf returns the scenario that checks what notices a mutant; without a mutant, each in turn.
func scenarioOf(mutant Mutant, seed int) *exploration.Scenario {
	for _, scenario := range scenarios.All {
		if slices.ContainsFunc(scenario.Properties, func(p *history.Property) bool { return slices.Contains(mutant.KilledBy, p.ID) }) {
			return scenario
		}
	}
	return withoutOperator()[seed%len(withoutOperator())]
}

// isObserved reports whether upstream does not promise a property, so that a deviation shows no mutant.
func isObserved(id string) bool {
	return slices.ContainsFunc(scenarios.All, func(scenario *exploration.Scenario) bool {
		return slices.ContainsFunc(scenario.Properties, func(p *history.Property) bool { return p.ID == id && p.Observed })
	})
}

// detections are the results of all searches of a mutant.
type detections struct {
	Mutant
	found, searches int
	mean, longest   time.Duration
	properties      []string
}

func detectionsOf(mutant Mutant, searches []search) detections {
	f := detections{Mutant: mutant, searches: len(searches)}
	var total time.Duration
	for _, search := range searches {
		if len(search.failed) > 0 {
			f.found++
			total, f.longest = total+search.took, max(f.longest, search.took)
			f.properties = append(f.properties, search.failed...)
		}
	}
	f.mean = total / time.Duration(max(f.found, 1))
	slices.Sort(f.properties)
	f.properties = slices.Compact(f.properties)
	return f
}

// String is a line of the table in a terminal.
func (f detections) String() string {
	return fmt.Sprintf("%-36s %6s %9s %9s  %s", f.Name, fmt.Sprintf("%d/%d", f.found, f.searches),
		f.mean.Round(time.Second), f.longest.Round(time.Second), strings.Join(f.properties, ", "))
}

// historiesDocument is the generated document.
const historiesDocument = "docs/planted-faults.md"

// explorations is how many explorations go on at the same time.
func (o options) explorations() int { return max(o.sideBySide, 1) }

// heading begins the document.
func (o options) heading() string {
	return fmt.Sprintf(`<!-- Generated by go run ./test/mutation -explore N. Do not edit. -->
# Planted faults that explorations find

Each fault was planted in Kubernetes and explored with %d seeds for at most %s each, up to %d at a time on %d cores. They depend on concurrency or
on memory, so that few or none of the behaviors notice them. Those that only an observed property shows are explored for %s. Some are planted
in how a controller handles what is injected, and do not show without it. The last row is Kubernetes without a fault, in each scenario in turn.

| fault | injected | found | mean time | longest | properties |
|---|---|---|---|---|---|
`, o.seeds, duration.HumanDuration(exploringTime), o.explorations(), runtime.NumCPU(), duration.HumanDuration(observedTime))
}

// markdown is a row of the document.
func (f detections) markdown() string {
	mean, longest := "", ""
	if f.found > 0 {
		mean, longest = f.mean.Round(time.Second).String(), f.longest.Round(time.Second).String()
	}
	return fmt.Sprintf("| %s | %s | %d of %d | %s | %s | %s |\n", cmp.Or(f.Breaks, "none"), strings.Join(f.Inject, ", "), f.found, f.searches,
		mean, longest, strings.Join(f.properties, ", "))
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
