package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// series is a number of runs, some side by side.
type series struct {
	experiments []experiment
	// sideBySide is how many runs go on at the same time; of those that mostly wait, waitingSideBySide more.
	sideBySide int
	// again takes what earlier runs of the same binaries reported.
	again bool
	out   io.Writer
}

// waitingSideBySide is how many runs that mostly wait go on beside the others.
const waitingSideBySide = 2

// test runs all and prints a line each as it ends. When the context ends, it returns the outcomes so far.
func (s series) test(ctx context.Context, l laboratory) []outcome {
	_, _ = fmt.Fprintf(s.out, "%d runs, up to %d side by side: about %s\n",
		len(s.experiments), s.sideBySide+waitingSideBySide, inMinutes(s.expected(s.experiments)))
	_, _ = fmt.Fprintf(s.out, "%-44s %-10s %7s %9s %8s  %s\n", "MUTANT", "", "SECONDS", "DONE", "LEFT", "FAILED BEHAVIOURS")
	var outcomes []outcome
	for outcome := range s.run(ctx, l) {
		outcomes = append(outcomes, outcome)
		_, _ = fmt.Fprintf(s.out, "%-44s %-10s %7.0f %9s %8s  %s\n", outcome.mutant.Name, outcome.word(), outcome.took.Seconds(),
			fmt.Sprintf("%d/%d", len(outcomes), len(s.experiments)), inMinutes(s.left(outcomes)), outcome.say())
	}
	return outcomes
}

// run runs all and sends the outcomes. Those that mostly wait have their own queue, so that they cost no time.
func (s series) run(ctx context.Context, l laboratory) <-chan outcome {
	outcomes := make(chan outcome)
	var running sync.WaitGroup
	for waits, sideBySide := range s.queues() {
		waiting := make(chan experiment)
		for range sideBySide {
			running.Go(func() {
				for e := range waiting {
					if outcome := l.test(ctx, e, s.again); ctx.Err() == nil || outcome.problem == nil {
						outcomes <- outcome // an interrupted run has no outcome
					}
				}
			})
		}
		running.Go(func() {
			defer close(waiting)
			for _, e := range s.experiments {
				if e.waits() == waits && ctx.Err() == nil {
					waiting <- e
				}
			}
		})
	}
	go func() {
		running.Wait()
		close(outcomes)
	}()
	return outcomes
}

// queues says how many runs go on at the same time, of those that mostly wait and of the others.
func (s series) queues() map[bool]int {
	return map[bool]int{true: waitingSideBySide, false: s.sideBySide}
}

// expected is about how long some of the runs take.
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

// left is about how long the runs take that have not ended, going by how long the others took.
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

// inMinutes is a duration that is not known to the second.
func inMinutes(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
}
