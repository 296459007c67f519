// Package exploration runs random operations on a cluster, round after round, as a scenario draws them, and searches for those that break a promise.
// What clients and watches see is checked by package history, which knows no client.
package exploration

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Search runs rounds until one of them breaks a promise, or the time is over.
type Search struct {
	// Clients is how many clients a round has, and Seed the random seed of its operations.
	Clients int
	Seed    uint64
	// Programs are run instead of drawn ones, in every round; nil for drawn ones.
	Programs []generate.Program
	// For is how long the search lasts unless a promise is broken.
	For time.Duration
	// ReduceFor limits the search for fewer operations that break the same promise; 0 for no search.
	ReduceFor time.Duration
	// Faults are injected into drawn programs, and into those of Programs that contain them.
	Faults injection.Selection
	// OnRound is called after each round.
	OnRound func(Totals)
}

// Totals count what was checked.
type Totals struct {
	Rounds, Requests, Events int
	// Faults is how many injected faults had an effect.
	Faults int
	// Checking is the time that the checks took.
	Checking time.Duration
}

// Result is what a search found.
type Result struct {
	Totals
	// Failures are the promises that were broken, the first time each.
	Failures []Failure
	// Undecided is what is not known of a property, because other clients also write the objects.
	Undecided map[*history.Property]Undecided
	// Comparable reports that all resourceVersions were numbers, so that they have an order.
	Comparable bool
	// Faults counts the injected faults that had an effect, by their names, and LeftOut are the reasons why some could not be injected.
	Faults  map[string]int
	LeftOut []string
}

// Undecided counts the objects of which a property is not decided.
type Undecided struct {
	Objects int
	// Reason is that of the first of them.
	Reason string
}

// Failure is a promise that was broken, and how.
type Failure struct {
	history.Violation
	History *history.History
	// Programs reproduced it, and Seed has drawn them.
	Programs []generate.Program
	Seed     uint64
	// After is how long the search took to find it.
	After time.Duration
	// Attempts is how many rounds were run to make the programs smaller; 0 if that was not tried.
	Attempts int
	// Needed are the names of the injected faults without which these rounds did not reproduce it.
	Needed []string
}

// Operations counts the operations of the programs, and the clients that have any.
func (f Failure) Operations() (operations, clients int) {
	for _, program := range f.Programs {
		operations += len(program)
		if len(program) > 0 {
			clients++
		}
	}
	return operations, clients
}

// Run searches. It ends when a property that is promised fails, after it has made that failure small.
func (s Search) Run(ctx context.Context, driver *Driver) (result Result, err error) {
	result.Comparable, result.Faults = true, map[string]int{}
	if result.LeftOut, err = driver.Inject(ctx, s.Faults); err != nil {
		return result, err
	}
	for _, fault := range driver.faults.Drawn() {
		result.Faults[fault.Name] = 0
	}
	began := time.Now()
	for round := uint64(0); time.Since(began) < s.For; round++ {
		seed := s.Seed + round
		programs := s.Programs
		if programs == nil {
			programs = generate.Programs(seed, driver.Options(s.Clients))
		}
		recorded, violations, err := s.round(ctx, driver, programs, &result)
		if err != nil {
			return result, err
		}
		for _, violation := range violations {
			if !slices.ContainsFunc(result.Failures, func(other Failure) bool { return other.Property == violation.Property }) {
				failure := Failure{Violation: violation, History: recorded, Programs: programs, Seed: seed, After: time.Since(began)}
				result.Failures = append(result.Failures, failure)
			}
		}
		if at := slices.IndexFunc(result.Failures, func(failure Failure) bool { return !failure.Property.Observed }); at >= 0 {
			s.shrink(ctx, driver, &result.Failures[at], &result)
			return result, ctx.Err()
		}
	}
	return result, nil
}

// round runs a round and checks it.
func (s Search) round(ctx context.Context, driver *Driver, programs []generate.Program, result *Result) (*history.History, []history.Violation, error) {
	recorded, err := driver.Round(ctx, programs)
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	violations := result.decided(driver.scenario.violations(recorded))
	result.Checking += time.Since(began)
	result.Rounds++
	result.Requests += len(recorded.Requests)
	result.Events += len(recorded.Workloads)
	for _, stream := range recorded.Streams {
		result.Events += len(stream.Events)
	}
	for _, fault := range recorded.Faults {
		result.Faults[fault.Name]++
	}
	result.Totals.Faults += len(recorded.Faults)
	result.Comparable = result.Comparable && recorded.Comparable()
	if s.OnRound != nil {
		s.OnRound(result.Totals)
	}
	return recorded, violations, nil
}

// decided counts the violations that may be none, and returns the others.
func (r *Result) decided(violations []history.Violation) []history.Violation {
	return slices.DeleteFunc(violations, func(violation history.Violation) bool {
		if !violation.Undecided {
			return false
		}
		if r.Undecided == nil {
			r.Undecided = map[*history.Property]Undecided{}
		}
		counted := r.Undecided[violation.Property]
		r.Undecided[violation.Property] = Undecided{counted.Objects + 1, cmp.Or(counted.Reason, violation.Message)}
		return true
	})
}

// shrink removes injected faults, clients and operations from the programs of a failure, as long as what is left breaks the same property.
func (s Search) shrink(ctx context.Context, driver *Driver, failure *Failure, result *Result) {
	r := reduction{failure: failure, end: time.Now().Add(s.ReduceFor), run: func(programs []generate.Program) (*history.History, []history.Violation, error) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		return s.round(ctx, driver, programs, result)
	}}
	r.leaveOutFaults(time.Now().Add(s.ReduceFor / 2))
	r.leaveOutOperations()
}
