package exploration

import (
	"cmp"
	"context"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
)

// Scenario is what is explored, and how. What it does not need is zero.
type Scenario struct {
	Name string
	// Topic is what it is about in a few words, in brackets, and Help in sentences.
	Topic, Help string
	// Properties are what is checked.
	Properties []*history.Property
	// Features are those that a cluster must have.
	Features []v1alpha1.Feature
	// Optional are those without which it explores less.
	Optional []v1alpha1.Feature
	// Pods makes the objects pods, which are deleted gracefully.
	Pods bool
	// About names the kinds that it is about, where --resource cannot choose another one.
	About string
	// Namespaces is the number of namespaces of a round, over which its objects are distributed; 0 for that of the run.
	Namespaces int
	// Apart reports whether a round with these programs has those namespaces; nil if each round has.
	Apart func([]generate.Program) bool
	// Operator requires a resource with an operator, which Begin learns about.
	Operator bool
	// Objects is the number of objects of a round, Barrier that of objects which only Settle uses, and Operations that of a client's operations.
	Objects, Barrier, Operations int
	// NamespacesMayEnd permits the injected fault that deletes a namespace of the round.
	NamespacesMayEnd bool
	// Stale makes requests require the uid that their client saw last; see clients.Round.
	Stale bool
	// Draw draws the operation of a client that follows others.
	Draw func(d *generate.Drawer, before generate.Program) generate.Intent
	// Begin prepares a round.
	Begin func(context.Context, *Driver) error
	// Act carries out an intent with one or more requests. What needs nothing else is for clients.Do.
	Act func(context.Context, *clients.Actor, generate.Intent) error
	// Settle waits for a quiet moment at the end of a round, and adds to the history what is checked there. All objects are removed after it.
	Settle func(context.Context, *Driver, *history.History) error
	// Check returns the promises that a history breaks; nil for its own check.
	Check func(*history.History) []history.Violation
}

// violations are the promises that a history of the scenario breaks.
func (s *Scenario) violations(h *history.History) []history.Violation {
	if s.Check != nil {
		return s.Check(h)
	}
	return checks.Violations(h)
}

// String is the name.
func (s *Scenario) String() string { return s.Name }

// Permits reports whether a fault can be injected into the scenario.
func (s *Scenario) Permits(fault *injection.Fault) bool {
	return s.NamespacesMayEnd || !fault.EndsNamespace
}

// lacking introduces the reasons why a cluster does not have a feature.
var lacking = map[v1alpha1.Feature]string{
	v1alpha1.GC: "no garbage collector", v1alpha1.Node: "no real node",
	v1alpha1.KCM: "no deletion of namespaces", v1alpha1.Namespace: "no deletion of namespaces",
}

// check returns the skip reason of a scenario that requires what is missing; nil if it has everything.
func (s *Scenario) check(settings session.Config) error {
	if s.Namespaces > 0 && settings.Shared {
		return fmt.Errorf("%w: this run is confined to namespace %q", ErrSkipped, settings.Namespace)
	}
	for _, feature := range s.Features {
		reason := settings.Unsupported[feature]
		if feature == v1alpha1.GC {
			reason = cmp.Or(reason, settings.LostGarbageCollector)
		}
		if reason != "" {
			return fmt.Errorf("%w: %s: %s", ErrSkipped, lacking[feature], reason)
		}
	}
	return nil
}
