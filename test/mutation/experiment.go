package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// scope selects the behaviors that are run against a mutant.
type scope int

const (
	// topics selects the behaviors that must kill the mutant, and those of the same topics except those that wait for the cluster's clock.
	topics scope = iota
	// onlyNamed selects the behaviors that must kill the mutant.
	onlyNamed
	// everything selects the whole catalog: for a node mutant the behaviors that require a node, else the others.
	everything
)

// experiment is one run: a mutant and the behaviors to run.
type experiment struct {
	mutant    Mutant
	behaviors []plan.Behavior
}

// waitTimeout is the timeout of behaviors. Most mutants make behaviors wait until they time out, and a healthy cluster needs a fraction of a second.
const waitTimeout = 15 * time.Second

// experiments returns the runs, the controls first.
func experiments(mutants []Mutant, catalog []plan.Behavior, scope scope) []experiment {
	var planned []experiment
	for _, mutant := range mutants {
		planned = append(planned, experiment{mutant, scope.of(catalog, mutant)})
	}
	return append(controls(planned, catalog), planned...)
}

// of returns the behaviors to run against a mutant.
func (s scope) of(catalog []plan.Behavior, mutant Mutant) []plan.Behavior {
	named := func(b plan.Behavior) bool { return slices.Contains(mutant.KilledBy, b.ID) }
	near := func(b plan.Behavior) bool {
		return !waits(b) && slices.ContainsFunc(catalog, func(other plan.Behavior) bool {
			return named(other) && b.Suite() == other.Suite() && b.Topic() == other.Topic()
		})
	}
	return slices.DeleteFunc(slices.Clone(catalog), func(b plan.Behavior) bool {
		takes := s == everything || s == topics && near(b)
		return !named(b) && (!takes || requiresNode(b) != mutant.Node)
	})
}

// controls returns runs without a mutant of all behaviors that are run against mutants, with a node, without one, or both.
func controls(planned []experiment, catalog []plan.Behavior) []experiment {
	var controls []experiment
	for _, node := range []bool{false, true} {
		name := map[bool]string{false: noMutant, true: "none-on-a-node"}[node]
		control := experiment{mutant: Mutant{Name: name, Breaks: "nothing", Node: node}}
		for _, behavior := range catalog {
			if slices.ContainsFunc(planned, func(e experiment) bool { return e.mutant.Node == node && e.includes(behavior.ID) }) {
				control.behaviors = append(control.behaviors, behavior)
			}
		}
		if len(control.behaviors) > 0 {
			controls = append(controls, control)
		}
	}
	return controls
}

// noMutant is the name of the run without a mutant, and of the switch's position.
const noMutant = "none"

// class is what an experiment needs, and mostly takes its time.
type class string

const (
	sharing     class = "shared cluster"
	alone       class = "own cluster"
	sharingNode class = "shared node"
	ownNode     class = "own node"
	sleeping    class = "waiting for the clock"
)

// classes are in the order of the printed table.
var classes = []class{sharing, alone, sharingNode, ownNode, sleeping}

func (e experiment) class() class {
	own := e.isControl() || e.mutant.OwnCluster != ""
	switch {
	case e.waits():
		return sleeping
	case e.mutant.Node && own:
		return ownNode
	case e.mutant.Node:
		return sharingNode
	case own:
		return alone
	}
	return sharing
}

// shares reports whether the experiment uses a running cluster after others.
func (e experiment) shares() bool { return e.class() == sharing || e.class() == sharingNode }

// nodes is the number of nodes that the cluster must have.
func (e experiment) nodes() int {
	switch {
	case slices.ContainsFunc(e.behaviors, requiresTwoNodes):
		return embedded.MaxNodes
	case e.mutant.Node:
		return 1
	}
	return 0
}

// isControl reports whether no mutant is active.
func (e experiment) isControl() bool { return len(e.mutant.KilledBy) == 0 }

// includes reports whether the behavior is run.
func (e experiment) includes(id string) bool {
	return slices.ContainsFunc(e.behaviors, func(b plan.Behavior) bool { return b.ID == id })
}

// waits reports whether a behavior mostly waits: for the cluster's clock, or for the garbage collector to discover a custom kind.
func waits(behavior plan.Behavior) bool { return behavior.Slow || behavior.AwaitsCollector() }

// waits reports whether one of the behaviors mostly waits.
func (e experiment) waits() bool { return slices.ContainsFunc(e.behaviors, waits) }

func requiresNode(behavior plan.Behavior) bool {
	return slices.Contains(behavior.Features, v1alpha1.Node)
}

func requiresTwoNodes(behavior plan.Behavior) bool {
	return slices.Contains(behavior.Features, v1alpha1.TwoNodes)
}

const (
	// processes is the number of parallel workers of a run.
	processes = 8
	// timeout is that of a whole behavior with a mutant, some of which make it wait several times for minutes.
	timeout = 4 * time.Minute
)

// arguments returns the runner's arguments, except those for the cluster.
func (e experiment) arguments() []string {
	ids := make([]string, len(e.behaviors))
	for i, behavior := range e.behaviors {
		ids[i] = behavior.ID
	}
	arguments := []string{"--procs", strconv.Itoa(processes), "--slow", "--label-filter", plan.LabelFilter(ids)}
	if e.isControl() {
		return arguments // other runs on this machine may slow it down
	}
	return append(arguments, "--timeout", timeout.String())
}

// embedded returns the runner's arguments for an embedded cluster.
func (e experiment) embedded() []string {
	arguments := []string{"--provider", "embedded", "--nodes", strconv.Itoa(e.nodes())}
	if e.nodes() > 0 || e.waits() {
		return arguments
	}
	return append(arguments, "--wait-timeout", fmt.Sprint(waitTimeout))
}

// expected is the approximate duration of the run, with its cluster's start and end.
func (e experiment) expected() time.Duration {
	switch {
	case slices.ContainsFunc(e.behaviors, func(b plan.Behavior) bool { return b.Slow }):
		return 100 * time.Second
	case e.waits():
		return 55 * time.Second
	}
	switch e.class() {
	case ownNode:
		return 40 * time.Second
	case sharingNode:
		return 25 * time.Second
	case sharing:
		return 6 * time.Second
	}
	return 20 * time.Second
}
