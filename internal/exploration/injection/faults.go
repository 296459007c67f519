// Package injection injects faults into the rounds of an exploration: what happens to every cluster, but rarely. A fault breaks no promise, so that
// whatever breaks one with it is a finding.
package injection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

// Fault is an injected fault. What it does not need is zero.
type Fault struct {
	Name string
	// Help describes it in a few words.
	Help string
	// PerRound is how often a round has it on average.
	PerRound float64
	// Features are those that a cluster must have.
	Features []v1alpha1.Feature
	// EndsNamespace reports that it ends a namespace of the round, which a scenario must permit.
	EndsNamespace bool

	// prepare sets up what it needs. It fails with the reason why the fault cannot be injected.
	prepare func(context.Context, *Injector) error
	// inject injects it, on behalf of a client.
	inject func(context.Context, *Injector, *clients.Actor, generate.Intent) error
	// react responds to the next write of a controller that it applies to, in place of inject.
	react   func(context.Context, *Injector, webhookserver.Review) admission.Response
	applies func(webhookserver.Review) bool
}

// String is the name.
func (f *Fault) String() string { return f.Name }

// Refuse is the name of the fault that refuses a write.
const Refuse = "refuse"

// All are the faults.
var All = []*Fault{
	{
		Name: Refuse, Help: "a webhook refuses the next write of a controller", PerRound: 8,
		Features: []v1alpha1.Feature{v1alpha1.Hook}, prepare: listen, react: refuse, applies: anyWrite,
	},
	{
		Name: "delay", Help: "a webhook delays the next write of a controller by " + delayed.String(), PerRound: 2,
		Features: []v1alpha1.Feature{v1alpha1.Hook}, prepare: listen, react: delay, applies: anyWrite,
	},
	{
		Name: "conflict", Help: "another client writes between a read and a write of a controller", PerRound: 5,
		Features: []v1alpha1.Feature{v1alpha1.Hook}, prepare: listen, react: conflict, applies: writesExisting,
	},
	{
		Name: "restart", Help: "the controller manager, the scheduler or the API server restarts", PerRound: 0.5,
		prepare: findParts, inject: restart,
	},
	{
		Name: "watch-end", Help: "a watch ends, and the next one begins where it has ended", PerRound: 4, inject: endWatch,
	},
	{
		Name: "namespace", Help: "a namespace of the round is deleted", PerRound: 1, EndsNamespace: true, inject: endNamespace,
	},
}

// delayed is how long a write is delayed: less than the timeout of the webhook.
const delayed = 2 * time.Second

// Help describes the faults, one a line.
func Help() string {
	var lines []string
	for _, fault := range All {
		lines = append(lines, fmt.Sprintf("  %-10s %s", fault.Name, fault.Help))
	}
	return strings.Join(lines, "\n")
}

// Every stands for all faults that a scenario and a cluster permit.
const Every = "all"

// Selection are the faults to inject.
type Selection struct {
	Faults []*Fault
	// Possible leaves out those that a cluster does not permit. Otherwise it cannot be explored.
	Possible bool
}

// Scenario is what permits some faults.
type Scenario interface {
	fmt.Stringer
	Permits(fault *Fault) bool
}

// Select selects faults by their names. It fails for unknown names, and for faults that the scenario does not permit.
func Select(names []string, scenario Scenario) (Selection, error) {
	known := []string{Every}
	for _, fault := range All {
		known = append(known, fault.Name)
	}
	selected := Selection{Possible: slices.Contains(names, Every)}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return Selection{}, fmt.Errorf("unknown fault %q; choose from %v%s", name, known, suggest.Hint(name, known))
		}
	}
	for _, fault := range All {
		switch named := slices.Contains(names, fault.Name); {
		case named && !scenario.Permits(fault):
			return Selection{}, fmt.Errorf("scenario %s does not permit the fault %s, in which %s", scenario, fault.Name, fault.Help)
		case named, selected.Possible && scenario.Permits(fault):
			selected.Faults = append(selected.Faults, fault)
		}
	}
	return selected, nil
}

// NamesIn are the names of the faults that programs contain.
func NamesIn(programs []generate.Program) []string {
	var names []string
	for _, intent := range slices.Concat(programs...) {
		if intent.Fault != "" && !slices.Contains(names, intent.Fault) {
			names = append(names, intent.Fault)
		}
	}
	return names
}

// Without are programs without a fault.
func Without(programs []generate.Program, name string) []generate.Program {
	var without []generate.Program
	for _, program := range programs {
		without = append(without, slices.DeleteFunc(slices.Clone(program), func(intent generate.Intent) bool { return intent.Fault == name }))
	}
	return without
}

// endWatch ends one of the watches.
func endWatch(_ context.Context, i *Injector, _ *clients.Actor, intent generate.Intent) error {
	watcher := i.cluster.Watchers[intent.Object%len(i.cluster.Watchers)]
	watcher.End()
	i.note("watch-end", watcher.String()+" ended")
	return nil
}

// endNamespace deletes the namespace of an object, if it is one of the round's.
func endNamespace(ctx context.Context, i *Injector, actor *clients.Actor, intent generate.Intent) error {
	home := actor.Homes[actor.Names[intent.Object]]
	if home == "" {
		return nil
	}
	i.note("namespace", "namespace "+home+" is deleted")
	return actor.Send(ctx, clients.About(home, fixtures.Namespace(home), model.Operation{Verb: model.Delete}))
}
