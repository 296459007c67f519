// Package scenarios contains what can be explored: what clients do, what happens before and after that, and which properties are checked.
package scenarios

import (
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios/workloads"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

type (
	drawer = generate.Drawer
	intent = generate.Intent
)

// All are the scenarios.
var All = []*exploration.Scenario{Objects, Ownership, Grace, Nodes, Namespaces, workloads.Scenario, Operator}

// Named returns the scenario of a name; nil if there is none.
func Named(name string) *exploration.Scenario {
	for _, s := range All {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Topics lists the scenarios with their topics.
func Topics() string {
	return texts(", ", func(s *exploration.Scenario) string { return strings.TrimSpace(s.Name + " " + s.Topic) })
}

// Help describes the scenarios.
func Help() string { return texts(" ", func(s *exploration.Scenario) string { return s.Help }) }

func texts(separator string, of func(*exploration.Scenario) string) string {
	var texts []string
	for _, s := range All {
		if text := of(s); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, separator)
}

// chosen draws from the same choices all the time.
func chosen(choices []generate.Choice) func(*drawer, generate.Program) intent {
	return func(d *drawer, _ generate.Program) intent { return d.Choose(choices) }
}

// hold makes one in so many created objects have a finalizer.
func hold(d *drawer, i *intent, n int) {
	if d.OneIn(n) {
		i.Change.Finalizers = new(model.NamesOf(clients.HeldBy))
	}
}

// release removes that finalizer.
func release(_ *drawer, i *intent) { i.Verb, i.Release = model.Patch, true }

// get reads the current state.
func get(_ *drawer, i *intent) { i.Verb = model.Get }
