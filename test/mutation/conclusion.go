package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// conclusion is the result of all runs. Each of its lists must be empty.
type conclusion struct {
	// killedNone are behaviors that killed no mutant although a mutant names them.
	killedNone []string
	// survived are mutants that survived, and what they break.
	survived []string
	// otherwise are mutants that a behavior in their file did not kill, and failures without a mutant.
	otherwise []string
	// unresolved are runs without a result, and the reasons.
	unresolved []string
	// notExempt are behaviors that failed although exempt.yaml exempts them.
	notExempt []string
}

// conclude summarizes outcomes. It finds the expected behaviors that did not fail.
func conclude(outcomes []outcome, expected []string, exempt map[string]string) conclusion {
	var c conclusion
	failed := map[string]string{}
	for _, v := range outcomes {
		name := v.mutant.Name
		switch {
		case v.problem != nil:
			c.unresolved = append(c.unresolved, name+": "+v.problem.Error())
		case v.isControl() && !v.asExpected():
			c.otherwise = append(c.otherwise, fmt.Sprintf("no mutant (%s), and failed: %s", name, strings.Join(v.missed, ", ")))
		case !v.isControl() && len(v.missed) == 0:
			c.survived = append(c.survived, name+": "+v.mutant.Breaks)
		case !v.asExpected():
			c.otherwise = append(c.otherwise, fmt.Sprintf("%s: not killed by %s", name, strings.Join(v.silent(), ", ")))
		}
		if !v.isControl() {
			for _, id := range v.missed {
				failed[id] = name
			}
		}
	}
	for _, id := range expected {
		if failed[id] == "" && exempt[id] == "" {
			c.killedNone = append(c.killedNone, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(exempt)) {
		if failed[id] != "" {
			c.notExempt = append(c.notExempt, fmt.Sprintf("%s: %s made it fail", id, failed[id]))
		}
	}
	return c
}

// list is one list of a conclusion with its title.
type list struct {
	title string
	lines []string
}

// lists returns all lists; the two most important ones are last.
func (c conclusion) lists() []list {
	return []list{
		{"Runs without a result", c.unresolved},
		{"Different from what the files of mutants name", c.otherwise},
		{"Behaviors exempt from mutants that failed on one", c.notExempt},
		{"Behaviors that killed no mutant", c.killedNone},
		{"Mutants that survived", c.survived},
	}
}

// holds reports whether all lists are empty.
func (c conclusion) holds() bool {
	return !slices.ContainsFunc(c.lists(), func(l list) bool { return len(l.lines) > 0 })
}

// write writes the last two lists, and the others unless they are empty.
func (c conclusion) write(out io.Writer) {
	lists := c.lists()
	for i, list := range lists {
		always := i >= len(lists)-2
		switch {
		case len(list.lines) > 0:
			_, _ = fmt.Fprintf(out, "\n%s (%d):\n  %s\n", list.title, len(list.lines), strings.Join(list.lines, "\n  "))
		case always:
			_, _ = fmt.Fprintf(out, "\n%s: none\n", list.title)
		}
	}
}
