package main

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

const (
	// sampleTime is how long a sample may run. What is not judged by then is left out, and said.
	sampleTime = 2 * time.Minute
	// handful is how many defects a sample has at most.
	handful = 8
)

// sample draws a handful of defects that are expected to be judged in half of the time that a sample has, so that a busy
// machine judges them, too. The same seed draws the same, as long as there are the same defects.
func sample(defects []Defect, catalogue []plan.Behavior, seed string, s series) []Defect {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(seed))
	shuffled := slices.Clone(defects)
	slices.SortFunc(shuffled, func(a, b Defect) int { return strings.Compare(a.Name, b.Name) })
	random := rand.New(rand.NewPCG(hash.Sum64(), 0)) //nolint:gosec // nothing to guess here
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	var drawn []Defect
	for _, defect := range shuffled {
		with := append(slices.Clone(drawn), defect)
		if len(drawn) < handful && s.expected(experiments(with, catalogue, onlyNamed)) <= sampleTime/2 {
			drawn = with
		}
	}
	return drawn
}
