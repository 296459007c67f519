package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
)

// Preflight finds out what a run with these options would find out about its clusters before anything is judged, and removes
// what that took. The report has the clusters and no results. The error is about what could not be removed (ErrLeftBehind), or
// about the runner itself.
func Preflight(ctx context.Context, options Options) (v1alpha1.Report, error) {
	whole := v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: options.ID, Runner: options.Version, Start: time.Now(),
	}
	c := &conductor{Options: options}
	c.findColumns(ctx)
	problems := make([]error, len(c.clusters))
	var looking sync.WaitGroup
	for i, cluster := range c.clusters {
		looking.Go(func() { problems[i] = cluster.lookAt(ctx, options) })
	}
	looking.Wait()
	whole.Interrupted, whole.End = ctx.Err() != nil, time.Now()
	for _, cluster := range c.clusters {
		whole.Clusters = append(whole.Clusters, *cluster.report)
	}
	return whole, errors.Join(problems...)
}

// lookAt sets the cluster up, notes what that found out, and removes what it made.
func (c *clusterRun) lookAt(ctx context.Context, options Options) error {
	err := crash.Caught("set up", func() error { return c.setUp(ctx, options) })
	if err != nil {
		c.report.Problem = err.Error()
	}
	if c.environment == nil {
		return nil
	}
	c.environment.AwaitSimulatedNode()
	c.notePreflight()
	if !c.needsTearDown() {
		return nil
	}
	if err := c.environment.End(context.WithoutCancel(ctx)); err != nil {
		c.report.LeftBehind = fmt.Sprintf("%s; %s", err, c.removal(options.ID))
		return fmt.Errorf("%w on %s: %w; %s", ErrLeftBehind, c.Name, err, c.removal(options.ID))
	}
	return nil
}
