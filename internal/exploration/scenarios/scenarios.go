// Package scenarios contains what can be explored: one file for each scenario, with what its clients do, what happens before and after that, and
// which properties are checked.
package scenarios

import (
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

// drawer draws intents.
type (
	drawer = generate.Drawer
	intent = generate.Intent
)

// All are the scenarios.
var All = []*exploration.Scenario{Objects, Ownership, Grace, Nodes, Namespaces}

// Named returns the scenario of a name; nil if there is none.
func Named(name string) *exploration.Scenario {
	at := slices.IndexFunc(All, func(s *exploration.Scenario) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return All[at]
}

// Topics lists the scenarios with their topics.
func Topics() string {
	var topics []string
	for _, s := range All {
		topic := s.Name
		if s.Topic != "" {
			topic += " (" + s.Topic + ")"
		}
		topics = append(topics, topic)
	}
	return strings.Join(topics, ", ")
}

// Help describes the scenarios.
func Help() string {
	var sentences []string
	for _, s := range All {
		if s.Help != "" {
			sentences = append(sentences, s.Help)
		}
	}
	return strings.Join(sentences, " ")
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
