package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// scope is how much of the catalogue is run against a defect.
type scope int

const (
	// topics are the behaviours that must notice the defect, and those of the same topics. Of the latter what waits for
	// the cluster's own clock is left out.
	topics scope = iota
	// onlyNamed are the behaviours that must notice the defect.
	onlyNamed
	// everything is the whole catalogue: of a defect that shows on a node what needs one, and else the rest.
	everything
)

// experiment is one run: a defect and the behaviours that are run against it.
type experiment struct {
	defect    Defect
	behaviors []plan.Behavior
}

// waitTimeout is how long an ordinary behaviour waits for something that must happen. Most defects make behaviours wait
// in vain, and a healthy cluster needs a fraction of a second.
const waitTimeout = 15 * time.Second

// experiments are what is to be run, the controls first.
func experiments(defects []Defect, catalogue []plan.Behavior, scope scope) []experiment {
	var planned []experiment
	for _, defect := range defects {
		planned = append(planned, experiment{defect, scope.of(catalogue, defect)})
	}
	return append(controls(planned, catalogue), planned...)
}

// of are the behaviours that are run against a defect.
func (s scope) of(catalogue []plan.Behavior, defect Defect) []plan.Behavior {
	named := func(b plan.Behavior) bool { return slices.Contains(defect.Noticed, b.ID) }
	near := func(b plan.Behavior) bool {
		return !waits(b) && slices.ContainsFunc(catalogue, func(other plan.Behavior) bool {
			return named(other) && b.Suite() == other.Suite() && b.Topic() == other.Topic()
		})
	}
	return slices.DeleteFunc(slices.Clone(catalogue), func(b plan.Behavior) bool {
		takes := s == everything || s == topics && near(b)
		return !named(b) && (!takes || needsNode(b) != defect.Node)
	})
}

// controls are runs with nothing planted, to compare with, of all that is run against defects: on a node, without one, or
// both.
func controls(planned []experiment, catalogue []plan.Behavior) []experiment {
	var controls []experiment
	for _, node := range []bool{false, true} {
		name := map[bool]string{false: "none", true: "none-on-a-node"}[node]
		control := experiment{defect: Defect{Name: name, Breaks: "nothing", Node: node}}
		for _, behavior := range catalogue {
			if slices.ContainsFunc(planned, func(e experiment) bool { return e.defect.Node == node && e.takes(behavior.ID) }) {
				control.behaviors = append(control.behaviors, behavior)
			}
		}
		if len(control.behaviors) > 0 {
			controls = append(controls, control)
		}
	}
	return controls
}

// isControl says whether nothing is planted.
func (e experiment) isControl() bool { return len(e.defect.Noticed) == 0 }

// takes says whether the behaviour is run.
func (e experiment) takes(id string) bool {
	return slices.ContainsFunc(e.behaviors, func(b plan.Behavior) bool { return b.ID == id })
}

// waits says whether a run of the behaviour mostly waits: for the cluster's own clock, or for the collector to learn a
// custom kind.
func waits(behavior plan.Behavior) bool { return behavior.Slow || behavior.AwaitsCollector() }

// waits says whether one of the behaviours does.
func (e experiment) waits() bool { return slices.ContainsFunc(e.behaviors, waits) }

func needsNode(behavior plan.Behavior) bool { return slices.Contains(behavior.Needs, v1alpha1.Node) }

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
	case e.defect.Node:
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
	case e.defect.Node:
		return 40 * time.Second
	}
	return 20 * time.Second
}
