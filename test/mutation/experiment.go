package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// scope is how much of the catalogue is run against a mutant.
type scope int

const (
	// topics are the behaviors that must kill the mutant, and those of the same topics. Of the latter what waits for
	// the cluster's own clock is left out.
	topics scope = iota
	// onlyNamed are the behaviors that must kill the mutant.
	onlyNamed
	// everything is the whole catalogue: of a mutant that shows on a node what needs one, and else the rest.
	everything
)

// experiment is one run: a mutant and the behaviors that are run against it.
type experiment struct {
	mutant    Mutant
	behaviors []plan.Behavior
}

// waitTimeout is how long an ordinary behavior waits for something that must happen. Most mutants make behaviors wait
// in vain, and a healthy cluster needs a fraction of a second.
const waitTimeout = 15 * time.Second

// experiments are what is to be run, the controls first.
func experiments(mutants []Mutant, catalogue []plan.Behavior, scope scope) []experiment {
	var planned []experiment
	for _, mutant := range mutants {
		planned = append(planned, experiment{mutant, scope.of(catalogue, mutant)})
	}
	return append(controls(planned, catalogue), planned...)
}

// of are the behaviors that are run against a mutant.
func (s scope) of(catalogue []plan.Behavior, mutant Mutant) []plan.Behavior {
	named := func(b plan.Behavior) bool { return slices.Contains(mutant.KilledBy, b.ID) }
	near := func(b plan.Behavior) bool {
		return !waits(b) && slices.ContainsFunc(catalogue, func(other plan.Behavior) bool {
			return named(other) && b.Suite() == other.Suite() && b.Topic() == other.Topic()
		})
	}
	return slices.DeleteFunc(slices.Clone(catalogue), func(b plan.Behavior) bool {
		takes := s == everything || s == topics && near(b)
		return !named(b) && (!takes || needsNode(b) != mutant.Node)
	})
}

// controls are runs without a mutant, to compare with, of all that is run against mutants: on a node, without one, or
// both.
func controls(planned []experiment, catalogue []plan.Behavior) []experiment {
	var controls []experiment
	for _, node := range []bool{false, true} {
		name := map[bool]string{false: "none", true: "none-on-a-node"}[node]
		control := experiment{mutant: Mutant{Name: name, Breaks: "nothing", Node: node}}
		for _, behavior := range catalogue {
			if slices.ContainsFunc(planned, func(e experiment) bool { return e.mutant.Node == node && e.takes(behavior.ID) }) {
				control.behaviors = append(control.behaviors, behavior)
			}
		}
		if len(control.behaviors) > 0 {
			controls = append(controls, control)
		}
	}
	return controls
}

// isControl says whether no mutant is active.
func (e experiment) isControl() bool { return len(e.mutant.KilledBy) == 0 }

// takes says whether the behavior is run.
func (e experiment) takes(id string) bool {
	return slices.ContainsFunc(e.behaviors, func(b plan.Behavior) bool { return b.ID == id })
}

// waits says whether a run of the behavior mostly waits: for the cluster's own clock, or for the collector to learn a
// custom kind.
func waits(behavior plan.Behavior) bool { return behavior.Slow || behavior.AwaitsCollector() }

// waits says whether one of the behaviors does.
func (e experiment) waits() bool { return slices.ContainsFunc(e.behaviors, waits) }

func needsNode(behavior plan.Behavior) bool { return slices.Contains(behavior.Features, v1alpha1.Node) }

// arguments are the runner's, but for those that say where.
func (e experiment) arguments() []string {
	ids := make([]string, len(e.behaviors))
	for i, behavior := range e.behaviors {
		ids[i] = behavior.ID
	}
	return []string{"--procs", "8", "--slow", "--label-filter", plan.LabelFilter(ids)}
}

// embedded are the runner's arguments for an embedded cluster.
func (e experiment) embedded() []string {
	arguments := []string{"--provider", "embedded", "--node"}
	switch {
	case e.mutant.Node:
		return append(arguments, "kubelet")
	case e.waits():
		return append(arguments, "none")
	}
	return append(arguments, "none", "--wait-timeout", fmt.Sprint(waitTimeout))
}

// expected is about how long the run takes, its cluster's start and end included.
func (e experiment) expected() time.Duration {
	switch {
	case slices.ContainsFunc(e.behaviors, func(b plan.Behavior) bool { return b.Slow }):
		return 100 * time.Second
	case e.waits():
		return 55 * time.Second
	case e.mutant.Node:
		return 40 * time.Second
	}
	return 20 * time.Second
}
