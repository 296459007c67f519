package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// conclusion is what all runs have shown. Each of its lists must be empty.
type conclusion struct {
	// killedNone are behaviors that no mutant made fail, of those that one should.
	killedNone []string
	// survived are mutants that survived, and what they break.
	survived []string
	// otherwise are mutants that behaviors named in their files did not kill, and what failed without one.
	otherwise []string
	// unresolved are runs without a result, and why.
	unresolved []string
	// notExempt are behaviors that failed although exempt.yaml says that no mutant can make them.
	notExempt []string
}

// conclude sums up. Of the behaviors that are expected to fail, the ones that did not are found.
func conclude(outcomes []outcome, expected []string, exempt map[string]string) conclusion {
	var c conclusion
	failed := map[string]string{}
	for _, v := range outcomes {
		name := v.mutant.Name
		switch {
		case v.problem != nil:
			c.unresolved = append(c.unresolved, name+": "+v.problem.Error())
		case v.isControl() && !v.asItShould():
			c.otherwise = append(c.otherwise, fmt.Sprintf("no mutant (%s), and failed: %s", name, strings.Join(v.missed, ", ")))
		case !v.isControl() && len(v.missed) == 0:
			c.survived = append(c.survived, name+": "+v.mutant.Breaks)
		case !v.asItShould():
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

// list is one list of a conclusion, under its title.
type list struct {
	title string
	lines []string
}

// lists are all lists; the two that a reader looks for stand last.
func (c conclusion) lists() []list {
	return []list{
		{"Runs without a result", c.unresolved},
		{"Different from what the files of mutants name", c.otherwise},
		{"Behaviors exempt from mutants that failed on one", c.notExempt},
		{"Behaviors that killed no mutant", c.killedNone},
		{"Mutants that survived", c.survived},
	}
}

// holds says whether all lists are empty.
func (c conclusion) holds() bool {
	return !slices.ContainsFunc(c.lists(), func(l list) bool { return len(l.lines) > 0 })
}

// write writes the lists: the last two always, the others when there is something in them.
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
