package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Exploration is a run that checks random histories instead of behaviors.
type Exploration struct {
	exploration.Search
	// Scenario names what is explored; see scenarios.All.
	Scenario string
	// Inject are the names of the faults to inject, see injection.All, or injection.Every.
	Inject []string
	// Replay is a file with the programs to run instead of drawn ones; empty for none.
	Replay string
}

// NewExploration are the defaults of an exploration.
func NewExploration() Exploration {
	return Exploration{
		Search: exploration.Search{For: 5 * time.Minute, Clients: 6, ReduceFor: 90 * time.Second}, Scenario: scenarios.Objects.Name,
	}
}

// Complete reads the replay file and makes the options those of an exploration. Its errors are errors of the input.
func (e *Exploration) Complete(o *Options) error {
	o.Processes = 1
	o.MakePlan = func(context.Context, plan.Selection) (plan.Plan, error) {
		scenario := scenarios.Named(e.Scenario)
		return plan.Plan{Required: slices.Concat(scenario.Features, scenario.Optional)}, nil
	}
	if e.Replay != "" {
		replayed, err := readReplay(e.Replay)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name("replay"), err)
		}
		e.Programs, e.Seed, e.Scenario = replayed.Programs, replayed.Seed, replayed.Scenario
		e.Inject = injection.NamesIn(replayed.Programs)
	}
	switch {
	case e.For <= 0:
		return fmt.Errorf("%s must be greater than zero", o.Name("for"))
	case e.ReduceFor < 0:
		return fmt.Errorf("%s must not be negative; 0 reduces nothing", o.Name("reduce-for"))
	case e.Clients < 1 || e.Clients > maxClients:
		return fmt.Errorf("%s must be between 1 and %d", o.Name("clients"), maxClients)
	case scenarios.Named(e.Scenario) == nil:
		return fmt.Errorf("unknown scenario %q; choose from %v", e.Scenario, scenarios.All)
	case slices.ContainsFunc(o.Resources.Names, func(name string) bool { return slices.Contains(graceful, name) }):
		return fmt.Errorf("%s pods: pods are deleted gracefully, which scenario %s does not know", o.Name("resource"), e.Scenario)
	case scenarios.Named(e.Scenario).About != "" && len(o.Resources.Names) > 0:
		return fmt.Errorf("%s: scenario %s is about %s", o.Name("resource"), e.Scenario, scenarios.Named(e.Scenario).About)
	}
	selected, err := injection.Select(e.Inject, scenarios.Named(e.Scenario))
	if err != nil {
		return fmt.Errorf("%s: %w", o.Name("inject"), err)
	}
	e.Faults = selected
	return e.checkOperator(o)
}

// checkOperator checks what is about the operator of a resource.
func (e *Exploration) checkOperator(o *Options) error {
	named := o.Controller != "" || o.ControllerNamespace != "" || o.Settings.Controller.IsNamed()
	switch explored := scenarios.Named(e.Scenario).Operator; {
	case explored && len(o.Resources.Names) == 0:
		return fmt.Errorf("%s %s requires %s: the resource whose objects the operator reconciles", o.Name("scenario"), e.Scenario, o.Name("resource"))
	case explored && o.Namespace != "":
		return fmt.Errorf("%s %s and %s are mutually exclusive: namespaces are created and deleted", o.Name("scenario"), e.Scenario, o.Name("namespace"))
	case !explored && named:
		return fmt.Errorf("%s requires %s %s: scenario %s is about the API server", o.Name(e.controllerOption(o)), o.Name("scenario"), scenarios.Operator, e.Scenario)
	}
	return nil
}

// controllerOption is the option that names a controller.
func (e *Exploration) controllerOption(o *Options) string {
	switch {
	case o.Controller != "":
		return "controller"
	case o.ControllerNamespace != "":
		return "controller-namespace"
	}
	return "run-controller"
}

// maxClients limits the clients of a round: the search for an order takes longer the more requests go on at the same time.
const maxClients = 32

// graceful are the names of resources that are deleted gracefully.
var graceful = []string{"po", "pod", "pods"}

// Explore explores the clusters and returns the report, with one result for each property. The error is about the run itself.
func (o *Options) Explore(ctx context.Context, e Exploration) (v1alpha1.Report, error) {
	out := o.Out
	o.Out = io.Discard // the progress of behaviors
	c, err := o.begin(ctx)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	defer c.removeCluster()
	c.findColumns(ctx)
	lines := &exploreProgress{out: c.redactor.Writer(out), e: e}
	var exploring sync.WaitGroup
	for _, cluster := range c.clusters {
		exploring.Go(func() { c.exploreCluster(ctx, cluster, e, lines) })
	}
	exploring.Wait()
	whole := c.report(ctx)
	_, _ = c.written(c.beforeTeardown(whole)) // the second time returns the error
	err = c.redactor.Error(errors.Join(c.tearDown(ctx, whole), errors.Join(c.crashes...)))
	whole, unwritten := c.written(whole)
	return whole, errors.Join(err, unwritten, c.draftIssues(whole))
}

// draftIssues writes a draft of an issue for each failure of a report into the report directory.
func (c *conductor) draftIssues(whole v1alpha1.Report) error {
	if c.ReportDir == "" {
		return nil
	}
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			if result.Outcome != v1alpha1.Failed && result.Outcome != v1alpha1.Deviated {
				continue
			}
			var draft bytes.Buffer
			err := markdown.WriteIssue(&draft, whole, cluster, result, replayCommand(result.ID))
			if err == nil {
				err = maybe.WriteFile(filepath.Join(c.ReportDir, result.ID+".md"), draft.Bytes(), 0o644)
			}
			if err != nil {
				return fmt.Errorf("write the draft of an issue about %s: %w", result.ID, err)
			}
		}
	}
	return nil
}

// exploreCluster explores one cluster and notes the results.
func (c *conductor) exploreCluster(ctx context.Context, cluster *clusterRun, e Exploration, lines *exploreProgress) {
	if _, testable := c.setUp(ctx, cluster); !testable {
		return
	}
	cluster.shared.unwatch()
	var found exploration.Result
	began := time.Now()
	err := crash.Caught("explore", func() (err error) {
		found, err = e.search(ctx, cluster, func(totals exploration.Totals) { lines.round(c.redactor.Cluster(cluster.Name), totals) })
		return err
	})
	cluster.report.Results = e.results(cluster, found, err)
	for i := range cluster.report.Results {
		result := &cluster.report.Results[i]
		if result.Start = began; result.Seconds == 0 { // others failed before the end
			result.Seconds = time.Since(began).Seconds()
		}
	}
	for _, failure := range found.Failures {
		c.crashed(c.saveReplay(cluster, failure, e))
	}
	if len(crash.Stacks(err)) > 0 {
		c.crashed(err)
	}
	lines.ended(c.redactor.Cluster(cluster.Name), found)
}

func (e Exploration) search(ctx context.Context, cluster *clusterRun, onRound func(exploration.Totals)) (exploration.Result, error) {
	driver, err := exploration.NewDriver(ctx, cluster.Provider.RESTConfig(), cluster.session(1), scenarios.Named(e.Scenario))
	if err != nil {
		return exploration.Result{}, err
	}
	defer driver.Close()
	e.OnRound = onRound
	return e.Run(ctx, driver)
}

// results are one result for each property.
func (e Exploration) results(cluster *clusterRun, found exploration.Result, err error) []v1alpha1.Result {
	var results []v1alpha1.Result
	for _, property := range scenarios.Named(e.Scenario).Properties {
		result := v1alpha1.Result{Behavior: behaviorOf(property), Outcome: v1alpha1.Passed}
		at := slices.IndexFunc(found.Failures, func(failure exploration.Failure) bool { return failure.Property == property })
		switch {
		case at >= 0:
			result.Outcome = v1alpha1.Failed
			if property.Observed {
				result.Outcome = v1alpha1.Deviated
			}
			result.Seconds = found.Failures[at].After.Seconds()
			result.Failure = &v1alpha1.Failure{Message: messageOf(found.Failures[at], replayCommand(property.ID))}
			result.Timeline = timelineOf(found.Failures[at], cluster.explored(scenarios.Named(e.Scenario)))
		case errors.Is(err, exploration.ErrSkipped):
			result.Outcome, result.Reason = v1alpha1.Skipped, err.Error()
		case errors.Is(err, context.Canceled) && found.Rounds == 0:
			result.Outcome, result.Reason = v1alpha1.Interrupted, "the run was interrupted before the first round ended"
		case err != nil && !errors.Is(err, context.Canceled):
			result.Outcome, result.Reason = v1alpha1.Errored, err.Error()
		case property.Ordered && !found.Comparable:
			result.Outcome, result.Reason = v1alpha1.Skipped, "the resourceVersions of this server are not numeric, so they have no order"
		case found.Undecided[property].Objects > 0:
			undecided := found.Undecided[property]
			result.Outcome = v1alpha1.Skipped
			result.Reason = fmt.Sprintf("not decided for %d of the objects of %d rounds: %s", undecided.Objects, found.Rounds, undecided.Reason)
		}
		results = append(results, result)
	}
	return results
}

func behaviorOf(property *history.Property) v1alpha1.Behavior {
	behavior := v1alpha1.Behavior{
		ID: property.ID, Statement: property.Rule.Text, Level: v1alpha1.Core, Source: property.Rule.Source, Promise: property.Rule.Promise,
	}
	if property.Observed {
		behavior.Level = v1alpha1.Observed
	}
	return behavior
}

// replayCommand runs the programs of a failure of a property again.
func replayCommand(property string) string { return "runner explore --replay " + replayName(property) }

func replayName(property string) string { return property + ".json" }

// saveReplay writes the programs and the history of a failure into the report directory.
func (c *conductor) saveReplay(cluster *clusterRun, failure exploration.Failure, e Exploration) error {
	if c.ReportDir == "" {
		return nil
	}
	recorded, err := redact.Copy(c.redactor, failure.History)
	if err != nil {
		return err
	}
	return replay{
		APIVersion: v1alpha1.APIVersion, Kind: replayKind, Property: failure.Property.ID, Scenario: e.Scenario, Resource: c.redactor.Text(cluster.resource),
		Seed: failure.Seed, Programs: failure.Programs, History: recorded,
	}.write(filepath.Join(c.ReportDir, replayName(failure.Property.ID)))
}
