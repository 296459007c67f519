package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/operators"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
	"github.com/deletion-conformance/deletion-conformance/model/history/requests"
)

// failureWith is a failure of a property, with a history of one get that found nothing.
func failureWith(property *history.Property) exploration.Failure {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return exploration.Failure{
		Violation: history.Violation{Property: property, Rule: model.Held, Name: "r1-a", Message: "get found no object", Request: 0, Stream: -1},
		History: &history.History{
			Began: began, Names: []string{"r1-a"},
			Requests: []history.Request{
				{Client: 2, Call: time.Second, Return: 2 * time.Second, Name: "r1-a", Operation: model.Operation{Verb: model.Get}, Outcome: model.Outcome{Code: 404}},
				{Client: 1, Call: time.Second, Return: 2 * time.Second, Name: "r1-b", Operation: model.Operation{Verb: model.Get}, Outcome: model.Outcome{Code: 404}},
			},
			Streams: []history.Stream{{ID: "the watch", Events: []history.Event{
				{At: time.Second, Type: history.Added, Name: "r1-a", Object: model.Object{UID: "u", ResourceVersion: "7", Finalizers: "a"}},
				{At: time.Second, Type: history.Added, Name: "r1-b"},
			}}},
		},
		Programs: []generate.Program{{{Verb: model.Get}}, {}}, Seed: 42, Attempts: 17,
	}
}

func resultsOf(found exploration.Result, err error) map[string]v1alpha1.Result {
	results := map[string]v1alpha1.Result{}
	for _, result := range NewExploration().results(&clusterRun{environment: &environment.Environment{}}, found, err) {
		results[result.ID] = result
	}
	return results
}

func TestExploration_Results(t *testing.T) {
	g := NewWithT(t)
	results := resultsOf(exploration.Result{Comparable: true, Totals: exploration.Totals{Rounds: 1}}, nil)
	g.Expect(results).To(HaveLen(len(checks.Objects)))
	for id, result := range results {
		g.Expect(result.Outcome).To(Equal(v1alpha1.Passed), id)
	}
	g.Expect(results[requests.Linearizable.ID].Level).To(Equal(v1alpha1.Core))
	g.Expect(results[history.AtomicRemoval.ID].Level).To(Equal(v1alpha1.Observed))
}

func TestExploration_Skipped(t *testing.T) {
	refused := errors.Join(exploration.ErrSkipped, errors.New("create: forbidden"))
	for name, test := range map[string]struct {
		found   exploration.Result
		err     error
		outcome v1alpha1.Outcome
		reason  string
	}{
		"refused":                   {exploration.Result{}, refused, v1alpha1.Skipped, "create: forbidden"},
		"interrupted at once":       {exploration.Result{}, context.Canceled, v1alpha1.Interrupted, "before the first round ended"},
		"interrupted later":         {exploration.Result{Comparable: true, Totals: exploration.Totals{Rounds: 3}}, context.Canceled, v1alpha1.Passed, ""},
		"lost":                      {exploration.Result{Comparable: true}, errors.New("connection refused"), v1alpha1.Errored, "connection refused"},
		"versions without an order": {exploration.Result{Totals: exploration.Totals{Rounds: 3}}, nil, v1alpha1.Skipped, "are not numeric"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			result := resultsOf(test.found, test.err)[reads.WatchOrder.ID]
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(ContainSubstring(test.reason))
		})
	}
}

func TestExploration_Undecided(t *testing.T) {
	g := NewWithT(t)
	results := resultsOf(exploration.Result{
		Comparable: true, Totals: exploration.Totals{Rounds: 3},
		Undecided: map[*history.Property]exploration.Undecided{requests.Linearizable: {Objects: 2, Reason: "operator also writes these objects"}},
	}, nil)
	g.Expect(results[requests.Linearizable.ID].Outcome).To(Equal(v1alpha1.Skipped))
	g.Expect(results[requests.Linearizable.ID].Reason).To(Equal("not decided for 2 of the objects of 3 rounds: operator also writes these objects"))
	g.Expect(results[history.SameVersion.ID].Outcome).To(Equal(v1alpha1.Passed))
}

func TestMessageOf(t *testing.T) {
	g := NewWithT(t)
	message := messageOf(failureWith(requests.Linearizable), "runner explore --replay FILE")
	for _, part := range []string{
		"get found no object", "rule: An object must stay until it has no finalizers.", "Prevents the object from being removed", "object: r1-a",
		"1 operations of 1 clients, after 17 attempts to reduce it, seed 42", "replay: runner explore --replay FILE",
	} {
		g.Expect(message).To(ContainSubstring(part))
	}
	const link = "Kubernetes itself shows this deviation: docs/explore.md#what-upstream-shows"
	g.Expect(message).NotTo(ContainSubstring(link))
	g.Expect(messageOf(failureWith(history.AtomicRemoval), "")).To(ContainSubstring(link))
}

func TestMessageOf_InjectedFaults(t *testing.T) {
	g := NewWithT(t)
	failure := failureWith(requests.Linearizable)
	g.Expect(messageOf(failure, "")).NotTo(ContainSubstring("injected"))

	failure.History.Faults = []history.Fault{
		{At: time.Second, Name: "refuse", Effect: "refused DELETE of configmaps r1-a by its controller"}, {At: 2 * time.Second, Name: "refuse", Effect: "refused another"},
	}
	const shown = "refuse (refused DELETE of configmaps r1-a by its controller)\n"
	g.Expect(messageOf(failure, "")).To(ContainSubstring("injected faults that may matter: " + shown))
	failure.Needed = []string{"refuse", "restart"}
	g.Expect(messageOf(failure, "")).To(ContainSubstring("does not happen without the injected faults: " + shown))
	g.Expect(messageOf(failure, "")).NotTo(ContainSubstring("may matter"))

	events := timelineOf(failure, v1alpha1.ObjectReference{Kind: "ConfigMap"}).Events
	g.Expect(events).To(HaveLen(3))
	g.Expect(events[2]).To(And(HaveField("Type", "INJECTED"), HaveField("Name", "refuse"), HaveField("Changes", ConsistOf("refused another"))))
}

func TestExploration_Inject(t *testing.T) {
	for name, test := range map[string]struct {
		scenario string
		inject   []string
		faults   []string
		fails    string
	}{
		"none":                        {scenario: "ownership"},
		"some":                        {"ownership", []string{"restart", "refuse"}, []string{"refuse", "restart"}, ""},
		"all that it permits":         {"ownership", []string{"all"}, []string{"refuse", "delay", "conflict", "restart", "watch-end"}, ""},
		"all":                         {"namespaces", []string{"all"}, []string{"refuse", "delay", "conflict", "restart", "watch-end", "namespace"}, ""},
		"one that it does not permit": {"ownership", []string{"all", "namespace"}, nil, "--inject: scenario ownership does not permit the fault namespace"},
		"unknown":                     {"ownership", []string{"restat"}, nil, `--inject: unknown fault "restat"`},
	} {
		t.Run(name, func(t *testing.T) {
			g, options, e := NewWithT(t), NewOptions(), NewExploration()
			e.Scenario, e.Inject = test.scenario, test.inject
			err := e.Complete(&options)
			if test.fails != "" {
				g.Expect(err).To(MatchError(HavePrefix(test.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, fault := range e.Faults.Faults {
				names = append(names, fault.Name)
			}
			g.Expect(names).To(Equal(test.faults))
			g.Expect(e.Faults.Possible).To(Equal(slices.Contains(test.inject, "all")))
		})
	}
}

func TestReplay_InjectedFaults(t *testing.T) {
	g, options, e := NewWithT(t), NewOptions(), NewExploration()
	e.Replay = filepath.Join(t.TempDir(), "replay.json")
	written := replay{APIVersion: v1alpha1.APIVersion, Kind: replayKind, Programs: []generate.Program{{{Fault: "delay"}, {Verb: model.Get}}, {{Fault: "refuse", Object: 2}, {Fault: "delay"}}}}
	g.Expect(written.write(e.Replay)).To(Succeed())

	g.Expect(e.Complete(&options)).To(Succeed())

	g.Expect(e.Inject).To(ConsistOf("delay", "refuse"))
	g.Expect(e.Faults.Faults).To(HaveLen(2))
	written.Programs[0][0].Fault = "explode"
	g.Expect(written.write(e.Replay)).To(Succeed())
	g.Expect(e.Complete(&options)).To(MatchError(ContainSubstring(`unknown fault "explode"`)))
}

func TestTimelineOf(t *testing.T) {
	g := NewWithT(t)
	shown := timelineOf(failureWith(requests.Linearizable), v1alpha1.ObjectReference{Kind: "ConfigMap"})
	g.Expect(shown.Requests).To(HaveLen(1), "the other is about another object")
	g.Expect(shown.Requests[0].Path).To(Equal("client 2: get r1-a"))
	g.Expect(shown.Requests[0].Refusal).To(Equal("<-- no order explains this response"))
	g.Expect(shown.Events).To(HaveLen(1))
	g.Expect(shown.Events[0].Finalizers).To(Equal([]string{"a"}))
}

func TestTimelineOf_Children(t *testing.T) {
	g := NewWithT(t)
	failure := failureWith(operators.Children)
	failure.History.Operated = &history.Operated{Children: []history.Child{
		{Parent: "r1-a", Event: history.Event{Type: history.Added, Name: "Secret/r1-a-1"}}, {Parent: "r1-b", Event: history.Event{Type: history.Added, Name: "Secret/r1-b-1"}},
	}}
	shown := timelineOf(failure, v1alpha1.ObjectReference{Kind: "Widget"})
	g.Expect(shown.Events).To(HaveLen(2), "the third is a child of another object")
	g.Expect(shown.Events[0].Kind).To(Equal("Secret"), "it was there first")
	g.Expect(shown.Events[0].Name).To(Equal("r1-a-1"))
	g.Expect(shown.Events[1].Kind).To(Equal("Widget"))
}

func TestReplay_RoundTrip(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "replay.json")
	failure := failureWith(requests.Linearizable)
	g.Expect(replay{
		APIVersion: v1alpha1.APIVersion, Kind: replayKind, Property: failure.Property.ID, Seed: 42, Programs: failure.Programs, History: failure.History,
	}.write(file)).To(Succeed())

	options, exploration := NewOptions(), NewExploration()
	exploration.Replay = file
	g.Expect(exploration.Complete(&options)).To(Succeed())
	g.Expect(exploration.Seed).To(BeEquivalentTo(42))
	g.Expect(exploration.Programs).To(Equal(failure.Programs))
	g.Expect(os.Remove(file)).To(Succeed())
}
