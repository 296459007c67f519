// Package run conducts a run: it visits the clusters, has the chosen behaviours judged by workers, leaves the clusters as
// they were, and makes the report.
package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// Cluster is a cluster to run on.
type Cluster struct {
	clusters.Target
	// Vouched names needs that whoever made the cluster vouches for.
	Vouched []v1alpha1.Need
	// Absent says of needs that are known not to be met why not.
	Absent map[v1alpha1.Need]string
	// Control is the socket under which parts of the cluster can be stopped; empty where they cannot.
	Control string
	// Ephemeral clusters are removed after the run, so nothing on them is.
	Ephemeral bool
}

// Options are what a run is about.
type Options struct {
	// ID is the run's id; see framework.NewRunID.
	ID string
	// Version is the runner's version, for the report.
	Version string
	// Shard is the part of the selection that this run is to judge, "2/5"; empty for all of it.
	Shard    string
	Clusters []Cluster
	Plan     plan.Plan
	// Processes is how many workers run at the same time.
	Processes int
	// Settle and Patience are how long specs watch for what must not happen, and wait for what must.
	Settle, Patience time.Duration
	// Timeout bounds each behaviour.
	Timeout     time.Duration
	WebhookHost string
	// ImageRegistry is a mirror to take images from.
	ImageRegistry string
	Strict        bool
	// Executable is the runner's own binary.
	Executable string
	// Durations say how long behaviours took before.
	Durations map[string]time.Duration
	Progress  Progress
}

// Progress is told what happens in a run, one thing at a time.
type Progress interface {
	// Visiting: the run begins to find out about a cluster.
	Visiting(cluster string)
	// Visited: this is what it found out.
	Visited(cluster v1alpha1.Cluster, chosen int)
	// Began: a behaviour begins.
	Began(cluster, id string)
	// Ended: a behaviour has ended.
	Ended(cluster string, result v1alpha1.Result)
	// Leaving: the run removes what it made on a cluster.
	Leaving(cluster string)
}

// ErrLeftBehind says that something of the run is still on a cluster.
var ErrLeftBehind = errors.New("the run could not remove all it made")

// visited is a cluster with the run's presence on it.
type visited struct {
	Cluster
	visit  *framework.Visit
	report *v1alpha1.Cluster
	// results holds what is known of each behaviour, by id.
	results map[string]v1alpha1.Result
}

// Run judges the chosen behaviours on all clusters. The report is complete also when the context is cancelled in
// between. The error is about what could not be removed again (ErrLeftBehind); what is wrong with a cluster is said in
// the report.
func Run(ctx context.Context, options Options) (v1alpha1.Report, error) {
	whole := v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: options.ID, Runner: options.Version,
		Start: time.Now(), Strict: options.Strict, Shard: options.Shard,
	}
	visits := judge(ctx, options)
	whole.Interrupted = ctx.Err() != nil
	err := leaveAll(ctx, options, visits)
	for _, v := range visits {
		v.complete(options.Plan)
		whole.Clusters = append(whole.Clusters, *v.report)
	}
	whole.End = time.Now()
	return whole, err
}

// begin visits one cluster and notes what it is like.
func (v *visited) begin(ctx context.Context, options Options) {
	config, err := clusters.Config(v.Connection)
	if err == nil {
		v.visit, err = framework.Begin(ctx, config, framework.VisitOptions{
			Run: options.ID, Workers: options.Processes, Vouched: v.Vouched,
			Settle: options.Settle, Patience: options.Patience, WebhookHost: options.WebhookHost,
			Absent: v.Absent, Control: v.Control, ImageRegistry: options.ImageRegistry,
		})
	}
	if v.visit != nil {
		v.report.ServerVersion, v.report.NodeRuntime = v.visit.ServerVersion(), v.visit.NodeRuntime()
		missing := v.visit.Missing()
		for _, need := range v1alpha1.Needs {
			reason, absent := missing[need]
			v.report.Capabilities = append(v.report.Capabilities, v1alpha1.Capability{Need: need, Present: !absent, Reason: reason})
		}
	}
	if err != nil && ctx.Err() == nil {
		v.report.Problem = err.Error()
	}
}

// leaveAll removes what the run made on the clusters, also when the run was interrupted.
func leaveAll(ctx context.Context, options Options, visits []*visited) error {
	var leaving sync.WaitGroup
	problems := make([]error, len(visits))
	for i, v := range visits {
		if v.visit == nil || v.Ephemeral {
			continue
		}
		options.Progress.Leaving(v.Name)
		leaving.Go(func() {
			if err := v.visit.End(context.WithoutCancel(ctx)); err != nil {
				problems[i] = fmt.Errorf("%w on %s: %w; run `runner cleanup --run %s` there later", ErrLeftBehind, v.Name, err, options.ID)
			}
		})
	}
	leaving.Wait()
	return errors.Join(problems...)
}

// complete adds the behaviours of which nothing is known, so that every report names the whole catalogue.
func (v *visited) complete(plan plan.Plan) {
	for _, behavior := range plan.Catalogue {
		result, known := v.results[behavior.ID]
		if !known {
			result = v1alpha1.Result{Behavior: behavior.Behavior}
			result.Outcome, result.Reason = v.unknown(plan.Left(behavior.ID))
		}
		v.report.Results = append(v.report.Results, result)
	}
}

// unknown says how a behaviour ended that no worker reported.
func (v *visited) unknown(left string) (v1alpha1.Outcome, string) {
	switch {
	case left != "":
		return v1alpha1.Filtered, left
	case v.report.Problem != "":
		return v1alpha1.Errored, v.report.Problem
	}
	return v1alpha1.Interrupted, "the run was interrupted before it could be judged"
}
