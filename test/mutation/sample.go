package main

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

const (
	// sampleTime limits a sample. Mutants that have not run by then are counted as skipped.
	sampleTime = 2 * time.Minute
	// handful is the maximum number of mutants in a sample.
	handful = 8
)

// sample draws mutants that are expected to run in half of a sample's time, for busy machines. It is deterministic for a seed and a set of
// mutants.
func sample(mutants []Mutant, catalog []plan.Behavior, seed string, s series) []Mutant {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(seed))
	shuffled := slices.Clone(mutants)
	slices.SortFunc(shuffled, func(a, b Mutant) int { return strings.Compare(a.Name, b.Name) })
	random := rand.New(rand.NewPCG(hash.Sum64(), 0)) //nolint:gosec // not security-relevant
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	var drawn []Mutant
	for _, mutant := range shuffled {
		with := append(slices.Clone(drawn), mutant)
		if len(drawn) < handful && s.expected(experiments(with, catalog, onlyNamed)) <= sampleTime/2 {
			drawn = with
		}
	}
	return drawn
}
