package exploration

import (
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// reduction makes the programs of a failure smaller. It keeps what still breaks the same property.
type reduction struct {
	failure *Failure
	// end is when it gives up.
	end time.Time
	// run runs programs and checks what happens. An error ends the reduction.
	run    func([]generate.Program) (*history.History, []history.Violation, error)
	failed bool
}

// attemptsFor is how often programs are run before they are thought not to reproduce a failure that depends on chance.
const attemptsFor = 8

// verdict is what is known of programs.
type verdict int

const (
	// unknown: the time was over before they were run often enough.
	unknown verdict = iota
	// unbroken: they did not break the property.
	unbroken
	// broken: they broke it.
	broken
)

// keep keeps programs if they still break the property.
func (r *reduction) keep(programs []generate.Program, end time.Time) verdict {
	for range attemptsFor {
		if r.failed || time.Now().After(end) {
			return unknown
		}
		r.failure.Attempts++
		recorded, violations, err := r.run(programs)
		if r.failed = err != nil; r.failed {
			return unknown
		}
		for _, violation := range violations {
			if violation.Property == r.failure.Property {
				r.failure.Violation, r.failure.History, r.failure.Programs = violation, recorded, programs
				return broken
			}
		}
	}
	return unbroken
}

// leaveOutFaults leaves out all injected faults, or those of each name until some time. It notes those without which the programs did not break the
// property.
func (r *reduction) leaveOutFaults(end time.Time) {
	names, without := injection.NamesIn(r.failure.Programs), r.failure.Programs
	for _, name := range names {
		without = injection.Without(without, name)
	}
	if len(names) > 1 && r.keep(without, end) == broken {
		return
	}
	for _, name := range names {
		if r.keep(injection.Without(r.failure.Programs, name), end) == unbroken {
			r.failure.Needed = append(r.failure.Needed, name)
		}
	}
}

// leaveOutOperations leaves out clients, and then fewer and fewer operations at once.
func (r *reduction) leaveOutOperations() {
	longest := 0
	for client, program := range r.failure.Programs {
		r.leaveOut(client, 0, len(program))
		longest = max(longest, len(r.failure.Programs[client]))
	}
	for size := longest / 2; size > 0; size /= 2 {
		for client := range r.failure.Programs {
			for at := 0; at < len(r.failure.Programs[client]); {
				if !r.leaveOut(client, at, size) {
					at += size
				}
			}
		}
	}
}

// leaveOut leaves out operations of one client, and reports whether the rest still breaks the property.
func (r *reduction) leaveOut(client, from, count int) bool {
	programs, program := slices.Clone(r.failure.Programs), r.failure.Programs[client]
	programs[client] = append(append(generate.Program{}, program[:from]...), program[min(from+count, len(program)):]...)
	return r.keep(programs, r.end) == broken
}
