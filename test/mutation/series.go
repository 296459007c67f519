package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// series is a number of runs, some in parallel.
type series struct {
	experiments []experiment
	// sideBySide is the number of parallel runs, besides as many, and at least waitingSideBySide, of those that mostly wait.
	sideBySide int
	// again uses the reports of earlier runs of the same binaries.
	again bool
	out   io.Writer
}

// waitingSideBySide is the smallest number of parallel runs that mostly wait.
const waitingSideBySide = 2

// test runs all experiments and prints a line for each. When the context ends, it returns the outcomes so far.
func (s series) test(ctx context.Context, l laboratory) []outcome {
	_, _ = fmt.Fprintf(s.out, "%d runs, up to %d side by side: about %s\n",
		len(s.experiments), s.queues()[false]+s.queues()[true], inMinutes(s.expected(s.experiments)))
	_, _ = fmt.Fprintf(s.out, "%-44s %-10s %7s %9s %8s  %s\n", "MUTANT", "", "SECONDS", "DONE", "LEFT", "FAILED BEHAVIORS")
	var outcomes []outcome
	for outcome := range s.run(ctx, l) {
		outcomes = append(outcomes, outcome)
		_, _ = fmt.Fprintf(s.out, "%-44s %-10s %7.0f %9s %8s  %s\n", outcome.mutant.Name, outcome.word(), outcome.took.Seconds(),
			fmt.Sprintf("%d/%d", len(outcomes), len(s.experiments)), inMinutes(s.left(outcomes)), outcome.summary())
	}
	s.printClasses(outcomes)
	return outcomes
}

// printClasses prints how long the experiments of each class took, and which a shared cluster could not decide.
func (s series) printClasses(outcomes []outcome) {
	_, _ = fmt.Fprintf(s.out, "\n%-24s %5s %12s %8s\n", "CLASS", "RUNS", "SECONDS EACH", "IN ALL")
	for _, class := range classes {
		ran, took := 0, time.Duration(0)
		for _, outcome := range outcomes {
			if outcome.class() == class && !outcome.earlier {
				ran, took = ran+1, took+outcome.took
			}
		}
		_, _ = fmt.Fprintf(s.out, "%-24s %5d %12.1f %8s\n", class, ran, took.Seconds()/float64(max(ran, 1)), inMinutes(took))
	}
	for _, outcome := range outcomes {
		if outcome.repeated != nil {
			_, _ = fmt.Fprintf(s.out, "%s was repeated with a separate cluster: %v\n", outcome.mutant.Name, outcome.repeated)
		}
	}
}

// run runs all experiments and sends the outcomes. Those that mostly wait have a separate queue. Mutants that survive are run again at the
// end, one at a time: next to other runs what they do can come too late to be noticed.
func (s series) run(ctx context.Context, l laboratory) <-chan outcome {
	outcomes := make(chan outcome)
	var running sync.WaitGroup
	var mu sync.Mutex
	var survivors []experiment
	for waits, sideBySide := range s.queues() {
		waiting := make(chan experiment)
		for i := range sideBySide {
			station := l.station(fmt.Sprintf("%t-%d", waits, i))
			running.Go(func() {
				defer station.close()
				for e := range waiting {
					outcome := l.test(ctx, station, e, s.again)
					switch {
					case ctx.Err() != nil && outcome.problem != nil: // an interrupted run has no outcome
					case len(s.experiments) > 1 && !e.isControl() && !outcome.asExpected():
						mu.Lock()
						survivors = append(survivors, e)
						mu.Unlock()
					default:
						outcomes <- outcome
					}
				}
			})
		}
		running.Go(func() {
			defer close(waiting)
			for _, e := range s.inOrder() {
				if e.waits() == waits && ctx.Err() == nil {
					waiting <- e
				}
			}
		})
	}
	go func() {
		defer close(outcomes)
		running.Wait()
		for _, e := range survivors {
			if outcome := l.testAlone(ctx, e); ctx.Err() == nil || outcome.problem == nil {
				outcomes <- outcome
			}
		}
	}()
	return outcomes
}

// inOrder returns the experiments by the number of their nodes, so that those that share a cluster follow each other.
func (s series) inOrder() []experiment {
	ordered := slices.Clone(s.experiments)
	slices.SortStableFunc(ordered, func(a, b experiment) int { return cmp.Compare(a.nodes(), b.nodes()) })
	return ordered
}

// queues returns the number of parallel runs, by whether they mostly wait.
func (s series) queues() map[bool]int {
	return map[bool]int{true: max(waitingSideBySide, s.sideBySide), false: s.sideBySide}
}

// expected is the approximate duration of some of the runs.
func (s series) expected(experiments []experiment) time.Duration {
	longest := time.Duration(0)
	for waits, sideBySide := range s.queues() {
		sum, one := time.Duration(0), time.Duration(0)
		for _, e := range experiments {
			if e.waits() == waits {
				sum, one = sum+e.expected(), max(one, e.expected())
			}
		}
		longest = max(longest, one, sum/time.Duration(sideBySide))
	}
	return longest
}

// left is the approximate remaining duration, extrapolated from the runs that have ended.
func (s series) left(ended []outcome) time.Duration {
	rest := slices.Clone(s.experiments)
	var took, expected time.Duration
	for _, outcome := range ended {
		rest = slices.DeleteFunc(rest, func(e experiment) bool { return e.mutant.Name == outcome.mutant.Name })
		if !outcome.earlier {
			took, expected = took+outcome.took, expected+outcome.expected()
		}
	}
	if expected == 0 {
		return s.expected(rest)
	}
	return time.Duration(float64(s.expected(rest)) * took.Seconds() / expected.Seconds())
}

// inMinutes formats an approximate duration.
func inMinutes(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
}
