package exploration

import (
	"context"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// attemptsFor is how often programs are run before they are thought not to reproduce a failure that depends on chance.
const attemptsFor = 8

// shrinker makes programs smaller that break a property.
type shrinker struct {
	Search
	driver   *Driver
	smallest *Failure
	attempts int
	end      time.Time
	result   *Result
}

// shrink removes clients and operations from the programs of a failure, as long as what is left breaks the same property.
func (s Search) shrink(ctx context.Context, driver *Driver, failure *Failure, result *Result) {
	t := shrinker{Search: s, driver: driver, smallest: failure, end: time.Now().Add(s.ReduceFor), result: result}
	defer func() { failure.Attempts = t.attempts }()
	for client := range failure.Programs {
		t.try(ctx, without(failure.Programs, client, 0, len(failure.Programs[client])))
	}
	for size := longest(failure.Programs) / 2; size > 0; size /= 2 {
		for client := range failure.Programs {
			for at := 0; at < len(failure.Programs[client]); {
				if !t.try(ctx, without(failure.Programs, client, at, size)) {
					at += size
				}
			}
		}
	}
}

// try runs programs some times, and keeps them if they break the property.
func (t *shrinker) try(ctx context.Context, programs []generate.Program) bool {
	for range attemptsFor {
		if ctx.Err() != nil || time.Now().After(t.end) {
			return false
		}
		t.attempts++
		recorded, violations, err := t.round(ctx, t.driver, programs, t.result)
		if err != nil {
			return false
		}
		for _, violation := range violations {
			if violation.Property == t.smallest.Property {
				t.keep(violation, recorded, programs)
				return true
			}
		}
	}
	return false
}

func (t *shrinker) keep(violation history.Violation, recorded *history.History, programs []generate.Program) {
	t.smallest.Violation, t.smallest.History, t.smallest.Programs = violation, recorded, programs
}

// without are the programs without some operations of one client.
func without(programs []generate.Program, client, from, count int) []generate.Program {
	var left []generate.Program
	for i, program := range programs {
		if i == client {
			kept := append(generate.Program{}, program[:from]...)
			program = append(kept, program[min(from+count, len(program)):]...)
		}
		left = append(left, program)
	}
	return left
}

func longest(programs []generate.Program) int {
	longest := 0
	for _, program := range programs {
		longest = max(longest, len(program))
	}
	return longest
}
