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
	// neverFailed are behaviours that no defect made fail, of those that one should.
	neverFailed []string
	// unnoticed are defects that nothing noticed, and what they break.
	unnoticed []string
	// otherwise are defects that other behaviours noticed than their files say, and what nothing planted made fail.
	otherwise []string
	// unjudged are runs that came to no verdict, and why.
	unjudged []string
	// plantable are behaviours that failed although unplantable.yaml says that no defect can make them.
	plantable []string
}

// conclude sums up. Of the behaviours that are expected to fail, the ones that did not are found.
func conclude(verdicts []verdict, expected []string, unplantable map[string]string) conclusion {
	var c conclusion
	failed := map[string]string{}
	for _, v := range verdicts {
		name := v.defect.Name
		switch {
		case v.problem != nil:
			c.unjudged = append(c.unjudged, name+": "+v.problem.Error())
		case v.isControl() && !v.asItShould():
			c.otherwise = append(c.otherwise, fmt.Sprintf("nothing planted (%s), and not held: %s", name, strings.Join(v.missed, ", ")))
		case !v.isControl() && len(v.missed) == 0:
			c.unnoticed = append(c.unnoticed, name+": "+v.defect.Breaks)
		case !v.asItShould():
			c.otherwise = append(c.otherwise, fmt.Sprintf("%s: not noticed by %s", name, strings.Join(v.silent(), ", ")))
		}
		if !v.isControl() {
			for _, id := range v.missed {
				failed[id] = name
			}
		}
	}
	for _, id := range expected {
		if failed[id] == "" && unplantable[id] == "" {
			c.neverFailed = append(c.neverFailed, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unplantable)) {
		if failed[id] != "" {
			c.plantable = append(c.plantable, fmt.Sprintf("%s: %s made it fail", id, failed[id]))
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
		{"Runs that came to no verdict", c.unjudged},
		{"Not as their files say", c.otherwise},
		{"Behaviours that unplantable.yaml says no defect makes fail, and one did", c.plantable},
		{"Behaviours that never failed", c.neverFailed},
		{"Defects that nothing noticed", c.unnoticed},
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
