package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// conductor conducts one run.
type conductor struct {
	*Options
	start    time.Time
	redactor *redact.Redactor
	progress progress.Progress
	// removeCluster removes the cluster that was created for the run.
	removeCluster func()
	clusters      []*clusterRun
	leftOut       []v1alpha1.LeftOut
	notifying     sync.Mutex
	// crashes are recovered panics of the runner, except during teardown.
	crashes  []error
	crashing sync.Mutex
}

// test lets workers run the selected behaviors on each cluster that can be set up.
func (c *conductor) test(ctx context.Context) {
	setUp := func(cluster int) (workers.Cluster, bool) { return c.setUp(ctx, c.clusters[cluster]) }
	c.crashed(c.Pool.Run(ctx, len(c.clusters), setUp, c.plan.Chosen(), func(event workers.Event) {
		c.crashed(crash.Caught("note what a worker reported", func() error {
			c.onEvent(event, ctx.Err() != nil)
			return nil
		}))
	}))
	session.RemoveFolders(c.id) // of workers that were killed
	for _, cluster := range c.clusters {
		cluster.shared.unwatch()
		cluster.noteOutages()
		cluster.complete(c.plan.For(cluster.resource), errors.Join(c.crashes...))
	}
}

// check records the properties of each cluster, without running a behavior.
func (c *conductor) check(ctx context.Context) {
	var checking sync.WaitGroup
	for _, cluster := range c.clusters {
		checking.Go(func() {
			c.setUp(ctx, cluster)
		})
	}
	checking.Wait()
}

// report returns the report of the run on all clusters.
func (c *conductor) report(ctx context.Context) v1alpha1.Report {
	whole := v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: c.id, Runner: c.Version, Shard: c.Selection.Shard, Strict: c.Strict,
		TraceID: c.Settings.TraceID, Start: c.start, End: time.Now(), Interrupted: ctx.Err() != nil, LeftOut: c.leftOut,
	}
	for _, cluster := range c.clusters {
		whole.Clusters = append(whole.Clusters, *cluster.report)
	}
	return whole
}

// notify calls the progress, one call at a time. A panic in it does not end the run.
func (c *conductor) notify(what func(progress.Progress)) {
	c.crashed(crash.Caught("show the progress", func() error {
		c.notifying.Lock()
		defer c.notifying.Unlock()
		what(c.progress)
		return nil
	}))
}

// crashed records a panic of the runner, if there was a new one.
func (c *conductor) crashed(err error) {
	c.crashing.Lock()
	defer c.crashing.Unlock()
	known := func(other error) bool { return other.Error() == err.Error() }
	if err != nil && !slices.ContainsFunc(c.crashes, known) {
		c.crashes = append(c.crashes, err)
	}
}

// setUp sets up one cluster, and returns how workers reach it if it can be tested.
func (c *conductor) setUp(ctx context.Context, cluster *clusterRun) (workers.Cluster, bool) {
	c.notify(func(p progress.Progress) { p.SettingUp(cluster.Name) })
	err := crash.Caught("set up", func() error { return cluster.setUp(ctx, c.Options) })
	if err != nil && ctx.Err() == nil {
		cluster.report.Problem = err.Error()
	}
	if len(crash.Stacks(err)) > 0 {
		c.crashed(err)
	}
	chosen := c.plan.For(cluster.resource).Chosen()
	c.notify(func(p progress.Progress) { p.SetUp(cluster.withFeatures(c.plan.Requires), len(chosen)) })
	if cluster.environment == nil || cluster.report.Problem != "" {
		return workers.Cluster{}, false
	}
	config := cluster.session(1)
	for i := range chosen {
		chosen[i].Skipped = config.SkipReason(chosen[i].Behavior) != ""
	}
	latency := cluster.environment.Latency()
	if latency.Slowness() >= preflight.NoticeablySlow {
		c.notify(func(p progress.Progress) {
			p.Slow(cluster.Name, latency, c.Estimate(chosen, latency.Read))
		})
	}
	lend, err := credentials.Lender(cluster.Provider.RESTConfig())
	if err != nil {
		cluster.report.Problem = err.Error()
		return workers.Cluster{}, false
	}
	return workers.Cluster{
		Lend:           lend,
		Context:        cluster.shared.watch(ctx, latency.Slowness()),
		Slowness:       latency.Slowness(),
		Extra:          cluster.environment.ExtraWorkers(),
		Kubeconfig:     cluster.Kubeconfig,
		RequestTimeout: cluster.Provider.RESTConfig().Timeout,
		Session:        cluster.session,
		Behaviors:      chosen,
		SpareNode:      cluster.environment.SpareNode() != "",
	}, true
}

// onEvent records events of workers, and passes them on.
func (c *conductor) onEvent(event workers.Event, interrupted bool) {
	cluster := c.clusters[event.Cluster]
	if event.Began != "" {
		c.notify(func(p progress.Progress) { p.Began(cluster.Name, event.Began) })
		return
	}
	result := v1alpha1.Result{Behavior: c.plan.Behavior(event.Lost), Outcome: v1alpha1.Errored, Reason: event.Reason}
	if event.Ended != nil {
		result = resultOf(*event.Ended)
		evidence := specs.EvidenceOf(*event.Ended)
		if evidence.LostGarbageCollector != "" {
			cluster.environment.RecordLostGarbageCollector(evidence.LostGarbageCollector)
		}
		if evidence.Unreleased != "" {
			cluster.unreleased.Store(evidence.Unreleased)
		}
		if evidence.Kept != "" {
			cluster.kept[result.ID] = evidence
		}
	}
	if interrupted && result.Outcome == v1alpha1.Skipped && result.Reason == "" {
		return // Ginkgo skips behaviors after an interruption
	}
	if before, again := cluster.results[result.ID]; again {
		result = after(before, result)
	}
	result = c.KnownFailures.Apply(result, cluster.resource, c.start, c.Strict)
	cluster.results[result.ID] = result
	c.notify(func(p progress.Progress) {
		if event.Retried {
			p.Retrying(cluster.Name, result)
			return
		}
		p.Ended(cluster.Name, result)
	})
}

// beforeTeardown returns the report before the teardown, which states that objects remain.
func (c *conductor) beforeTeardown(whole v1alpha1.Report) v1alpha1.Report {
	whole.Clusters = slices.Clone(whole.Clusters)
	for i, cluster := range c.clusters {
		if cluster.needsTearDown() {
			whole.Clusters[i].LeftBehind = "when this was written, the run had not cleaned up yet; if it was killed before that, " + cluster.removal(c.id)
		}
	}
	return whole
}

// tearDown removes what the run created on the clusters, even after an interruption, and records what it could not remove.
func (c *conductor) tearDown(ctx context.Context, whole v1alpha1.Report) error {
	var running sync.WaitGroup
	for _, cluster := range c.clusters {
		cluster.keepFailed()
	}
	problems := make([]error, len(c.clusters))
	for i, cluster := range c.clusters {
		if !cluster.needsTearDown() {
			continue
		}
		if lost := cluster.shared.outage(); lost != nil && cluster.environment.Responds(context.WithoutCancel(ctx)) != nil {
			whole.Clusters[i].LeftBehind = fmt.Sprintf("%s\nwhen the server responds again, %s", lost, cluster.removal(c.id))
			problems[i] = fmt.Errorf("%w on %s: %w: %s", ErrLeftBehind, cluster.Name, environment.ErrUnreachable, whole.Clusters[i].LeftBehind)
			continue
		}
		c.notify(func(p progress.Progress) { p.TearingDown(cluster.Name) })
		running.Go(func() {
			err := crash.Caught("tear down", func() error { return cluster.environment.Teardown(context.WithoutCancel(ctx)) })
			if err != nil {
				whole.Clusters[i].LeftBehind = fmt.Sprintf("%s\n%s", err, cluster.removal(c.id))
				problems[i] = fmt.Errorf("%w on %s: %w\n%s", ErrLeftBehind, cluster.Name, err, cluster.removal(c.id))
			}
			if kept := cluster.environment.Kept(); len(kept) > 0 {
				whole.Clusters[i].Kept = strings.Join(kept, "\n") + "\nto remove them, " + cluster.removal(c.id)
			}
		})
	}
	running.Wait()
	return errors.Join(problems...)
}
