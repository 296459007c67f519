package exploration

import (
	"context"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

// attemptsFor is how often programs are run before they are thought not to reproduce a failure that depends on chance.
const attemptsFor = 8

// shrink removes clients and operations from the programs of a failure, as long as what is left breaks the same property.
func (s Search) shrink(ctx context.Context, driver *Driver, failure *Failure, result *Result) {
	end := time.Now().Add(s.ReduceFor)
	// try leaves out operations of one client, and keeps the programs if they still break the property.
	try := func(client, from, count int) bool {
		programs := without(failure.Programs, client, from, count)
		for range attemptsFor {
			if ctx.Err() != nil || time.Now().After(end) {
				return false
			}
			failure.Attempts++
			recorded, violations, err := s.round(ctx, driver, programs, result)
			if err != nil {
				return false
			}
			for _, violation := range violations {
				if violation.Property == failure.Property {
					failure.Violation, failure.History, failure.Programs = violation, recorded, programs
					return true
				}
			}
		}
		return false
	}
	longest := 0
	for client, program := range failure.Programs {
		try(client, 0, len(program))
		longest = max(longest, len(failure.Programs[client]))
	}
	for size := longest / 2; size > 0; size /= 2 {
		for client := range failure.Programs {
			for at := 0; at < len(failure.Programs[client]); {
				if !try(client, at, size) {
					at += size
				}
			}
		}
	}
}

// without are the programs without some operations of one client.
func without(programs []generate.Program, client, from, count int) []generate.Program {
	left, program := slices.Clone(programs), programs[client]
	left[client] = append(append(generate.Program{}, program[:from]...), program[min(from+count, len(program)):]...)
	return left
}
