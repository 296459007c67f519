// Package run conducts a run: it sets its environment up on the clusters, has workers run the chosen behaviours, tears the
// environments down, and makes the report.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

// Options are what a run is about.
type Options struct {
	// ID is the run's id; see environment.NewRunID.
	ID string
	// Version is the runner's version, for the report.
	Version string
	// Shard is the part of the selection that this run is to judge, "2/5"; empty for all of it.
	Shard    string
	Clusters []clusters.Cluster
	// Resources are judged in the place of ConfigMaps, each of them on each cluster; none means ConfigMaps themselves.
	Resources Resources
	Plan      plan.Plan
	// Pool runs the behaviours.
	Pool workers.Pool
	// Settings are how specs run.
	Settings session.Settings
	// Namespace is where the run is to stay; empty for namespaces of its own.
	Namespace string
	// CleanupTimeout is how long the run waits at its end until everything it made is gone; 0 for the default.
	CleanupTimeout time.Duration
	// Strict makes an observed behaviour that deviates count.
	Strict   bool
	Progress Progress
	// Judged is given the report as soon as all is judged, before anything is torn down: whatever happens then cannot
	// lose it.
	Judged func(v1alpha1.Report)
}

// Progress is told what happens in a run, one thing at a time.
type Progress interface {
	// SettingUp: the run begins to find out about a cluster.
	SettingUp(cluster string)
	// SetUp: this is what it found out, as far as it matters to what is chosen.
	SetUp(cluster v1alpha1.Cluster, chosen int)
	// Found: this was found out about a cluster after it was set up.
	Found(cluster string, finding v1alpha1.Finding)
	// Slow: the cluster is slow, and the run on it will take about so long.
	Slow(cluster string, latency environment.Latency, takes time.Duration)
	// Began: a behaviour begins.
	Began(cluster, id string)
	// Ended: a behaviour has ended.
	Ended(cluster string, result v1alpha1.Result)
	// Again: the way to the cluster failed while a behaviour was judged, and it will be judged again.
	Again(cluster string, result v1alpha1.Result)
	// TearingDown: the run removes what it made on a cluster.
	TearingDown(cluster string)
}

// ErrLeftBehind says that something of the run is still on a cluster. The report says what.
var ErrLeftBehind = errors.New("the run could not remove all it made")

// conductor conducts one run.
type conductor struct {
	Options
	clusters  []*clusterRun
	leftOut   []v1alpha1.LeftOut
	behaviors map[string]v1alpha1.Behavior
	notifying sync.Mutex
	// crashes are the panics of the runner's own that were caught, but for those while it tears down.
	crashes  []error
	crashing sync.Mutex
}

// Run judges the chosen behaviours on all clusters. The report is complete also when the context is cancelled in
// between, or when the runner itself fails. The error is about that, and about what could not be removed again
// (ErrLeftBehind); what is wrong with a cluster is said in the report.
func Run(ctx context.Context, options Options) (v1alpha1.Report, error) {
	whole := v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: options.ID, Runner: options.Version,
		Start: time.Now(), Strict: options.Strict, Shard: options.Shard,
	}
	c := &conductor{Options: options, behaviors: map[string]v1alpha1.Behavior{}}
	c.findColumns(ctx)
	for _, behavior := range options.Plan.Catalogue {
		c.behaviors[behavior.ID] = behavior.Behavior
	}
	c.crashed(c.run(ctx))
	session.RemoveFolders(options.ID) // of workers that were killed
	whole.Interrupted, whole.LeftOut = ctx.Err() != nil, c.leftOut
	for _, cluster := range c.clusters {
		cluster.complete(options.Plan, errors.Join(c.crashes...))
		whole.Clusters = append(whole.Clusters, *cluster.report)
	}
	whole.End = time.Now()
	options.Judged(c.leaving(whole))
	left := c.tearDown(ctx, whole)
	return whole, errors.Join(left, errors.Join(c.crashes...))
}

// run has workers run the chosen behaviours on each cluster that can be set up.
func (c *conductor) run(ctx context.Context) error {
	setUp := func(cluster int) (workers.Cluster, bool) { return c.setUp(ctx, c.clusters[cluster]) }
	return c.Pool.Run(ctx, len(c.clusters), setUp, c.Plan.Chosen(), func(event workers.Event) {
		c.crashed(crash.Caught("note what a worker reported", func() error {
			c.onEvent(event, ctx.Err() != nil)
			return nil
		}))
	})
}

// notify tells the progress one thing at a time. One that fails does not end the run.
func (c *conductor) notify(what func(Progress)) {
	c.crashed(crash.Caught("show the progress", func() error {
		c.notifying.Lock()
		defer c.notifying.Unlock()
		what(c.Progress)
		return nil
	}))
}

// crashed notes a panic of the runner's own, where there was one that is not known yet.
func (c *conductor) crashed(err error) {
	c.crashing.Lock()
	defer c.crashing.Unlock()
	known := func(other error) bool { return other.Error() == err.Error() }
	if err != nil && !slices.ContainsFunc(c.crashes, known) {
		c.crashes = append(c.crashes, err)
	}
}

// setUp sets one cluster up, and says how workers reach it if it can be judged.
func (c *conductor) setUp(ctx context.Context, cluster *clusterRun) (workers.Cluster, bool) {
	c.notify(func(p Progress) { p.SettingUp(cluster.Name) })
	err := crash.Caught("set up", func() error { return cluster.setUp(ctx, c.Options) })
	if err != nil && ctx.Err() == nil {
		cluster.report.Problem = err.Error()
	}
	if len(crash.Stacks(err)) > 0 {
		c.crashed(err)
	}
	c.notify(func(p Progress) { p.SetUp(cluster.withCapabilities(c.Plan.Wants), len(c.Plan.Chosen())) })
	if cluster.environment == nil || cluster.report.Problem != "" {
		return workers.Cluster{}, false
	}
	latency := cluster.environment.Latency()
	if latency.Slowness() >= environment.NoticeablySlow {
		c.notify(func(p Progress) { p.Slow(cluster.Name, latency, c.Pool.Estimate(c.Plan.Chosen(), latency.Read)) })
	}
	return workers.Cluster{
		Slowness:       latency.Slowness(),
		Kubeconfig:     cluster.Kubeconfig,
		RequestTimeout: cluster.Provider.RESTConfig().Timeout,
		Session:        cluster.session,
		Later:          []v1alpha1.Need{v1alpha1.SimulatedNode},
		AwaitLater:     func() { c.awaitSimulatedNode(cluster) },
	}, true
}

// awaitSimulatedNode waits until it is known whether specs can use Nodes without a machine, and says so where they cannot.
func (c *conductor) awaitSimulatedNode(cluster *clusterRun) {
	cluster.environment.AwaitSimulatedNode()
	before := cluster.report.Preflight
	cluster.notePreflight()
	for _, finding := range cluster.report.Preflight {
		known := func(other v1alpha1.Finding) bool { return other.Check == finding.Check && other.Cause == finding.Cause }
		if finding.Severity != v1alpha1.OK && !slices.ContainsFunc(before, known) {
			c.notify(func(p Progress) { p.Found(cluster.Name, finding) })
		}
	}
}

// onEvent notes what workers report, and passes it on.
func (c *conductor) onEvent(event workers.Event, interrupted bool) {
	cluster := c.clusters[event.Cluster]
	if event.Began != "" {
		c.notify(func(p Progress) { p.Began(cluster.Name, event.Began) })
		return
	}
	result := v1alpha1.Result{Behavior: c.behaviors[event.Lost], Outcome: v1alpha1.Errored, Reason: event.Reason}
	if event.Ended != nil {
		result = resultOf(*event.Ended)
		if lost := specs.EvidenceOf(*event.Ended).LostGarbageCollector; lost != "" {
			cluster.environment.LoseGarbageCollector(lost)
		}
	}
	if interrupted && result.Outcome == v1alpha1.Skipped && result.Reason == "" {
		return // Ginkgo skips what an interruption leaves out
	}
	if before, again := cluster.results[result.ID]; again {
		result = after(before, result)
	}
	cluster.results[result.ID] = result
	c.notify(func(p Progress) {
		if event.Again {
			p.Again(cluster.Name, result)
			return
		}
		p.Ended(cluster.Name, result)
	})
}

// leaving is the report as it stands until what the run made is removed: it says that this is still to be done.
func (c *conductor) leaving(whole v1alpha1.Report) v1alpha1.Report {
	whole.Clusters = slices.Clone(whole.Clusters)
	for i, cluster := range c.clusters {
		if cluster.needsTearDown() {
			whole.Clusters[i].LeftBehind = "when this was written, the run had yet to remove what it made; if it never did, " + cluster.removal(c.ID)
		}
	}
	return whole
}

// tearDown removes what the run made on the clusters, also when the run was interrupted, and notes in the report what it
// could not remove.
func (c *conductor) tearDown(ctx context.Context, whole v1alpha1.Report) error {
	var running sync.WaitGroup
	problems := make([]error, len(c.clusters))
	for i, cluster := range c.clusters {
		if !cluster.needsTearDown() {
			continue
		}
		c.notify(func(p Progress) { p.TearingDown(cluster.Name) })
		running.Go(func() {
			err := crash.Caught("tear down", func() error { return cluster.environment.End(context.WithoutCancel(ctx)) })
			if err != nil {
				whole.Clusters[i].LeftBehind = fmt.Sprintf("%s\n%s", err, cluster.removal(c.ID))
				problems[i] = fmt.Errorf("%w on %s: %w\n%s", ErrLeftBehind, cluster.Name, err, cluster.removal(c.ID))
			}
		})
	}
	running.Wait()
	return errors.Join(problems...)
}
