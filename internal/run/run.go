// Package run is the front end of a run and the run itself. Options are completed, validated and run: each cluster is set up, workers run
// the selected behaviors, the objects of the run are deleted, and the reports are written.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// ErrLeftBehind is the error when objects of the run remain on a cluster. The report lists them.
var ErrLeftBehind = errors.New("could not delete everything that the run created")

// InputError is an error of the input that shows only on a cluster.
type InputError struct{ error }

func (e InputError) Unwrap() error { return e.error }

// Run runs the selected behaviors on all clusters and writes the reports: before it deletes what it created, and again after that. The
// report and the error are redacted. The report is complete even when the context is canceled, or when the runner panics; it is the zero
// value when the run could not start. The error is about the run itself, reports that cannot be written, and objects that could not be
// deleted (ErrLeftBehind). Problems of a cluster are in the report.
func (o *Options) Run(ctx context.Context) (v1alpha1.Report, error) {
	c, err := o.begin(ctx)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	defer c.removeCluster()
	c.findColumns(ctx)
	c.test(ctx)
	whole := c.report(ctx)
	before, _ := c.written(c.beforeTeardown(whole)) // the second time returns the error
	awaitTrace := c.sendTrace(ctx, before)
	err = errors.Join(c.tearDown(ctx, whole), errors.Join(c.crashes...), c.progress.Close())
	awaitTrace()
	c.printStacks(err)
	c.remember(whole)
	whole, unwritten := c.written(c.withoutUntested(whole))
	return whole, errors.Join(c.redactor.Error(err), unwritten)
}

// Preflight checks what a run with these options would find before its first behavior, and deletes what it created for that. The report
// contains the clusters without results. The report and the error are redacted.
func (o *Options) Preflight(ctx context.Context) (v1alpha1.Report, error) {
	o.Processes, o.Out = 1, io.Discard
	c, err := o.begin(ctx)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	defer c.removeCluster()
	c.findColumns(ctx)
	c.check(ctx)
	whole := c.report(ctx)
	err = c.redactor.Error(errors.Join(c.tearDown(ctx, whole), errors.Join(c.crashes...)))
	whole, unredacted := c.redactor.Report(whole)
	return whole, errors.Join(err, unredacted)
}

// checkResourcesOnClusters refuses two names of one resource, and fixtures that would not be used. If that is unknown for a cluster, it
// cannot be tested either, which its setup reports.
func (o *Options) checkResourcesOnClusters(ctx context.Context) error {
	if len(o.Resources.Fixtures) == 0 && len(o.Resources.Names) < several {
		return nil
	}
	for _, cluster := range o.clusters {
		finder, err := newResourceFinder(ctx, cluster, o)
		if err == nil {
			if err := finder.checkNames(); err != nil {
				return InputError{fmt.Errorf("%s: %w", o.Name("resource"), err)}
			}
		}
		if err == nil && o.Resources.All {
			_, err = finder.addServed()
		}
		if err != nil {
			continue
		}
		if err := finder.checkFixtures(); err != nil {
			return InputError{fmt.Errorf("%s: %w", o.Name("fixture"), err)}
		}
	}
	return nil
}

// begin does what may take minutes: it finds or builds a kubectl and creates a cluster if necessary.
func (o *Options) begin(ctx context.Context) (c *conductor, err error) {
	switch {
	case o.Kubectl != "":
	case !o.plan.Requires(v1alpha1.Kubectl):
		o.Settings.Kubectl.Absent = session.KubectlUnwanted
	default:
		if o.Settings.Kubectl, err = o.FindKubectl(ctx); err != nil {
			return nil, err
		}
	}
	c = &conductor{Options: o, start: time.Now(), removeCluster: func() {}}
	if o.CreateCluster != nil {
		created, remove, err := o.CreateCluster(ctx, o.plan)
		if err != nil {
			return nil, err
		}
		o.clusters, c.removeCluster = []clusters.Cluster{created}, remove
	}
	scope := redact.Scope{Names: o.Redact, Namespace: o.Namespace, Files: append(slices.Clone(o.Kubeconfigs), o.Settings.Kubectl.Path)}
	if c.redactor, err = redact.For(o.clusters, scope); err != nil {
		c.removeCluster()
		return nil, err
	}
	o.Durations, o.Note = loadDurations(o.DurationsFile), c.redactor.Note
	columns := len(o.clusters) * o.Resources.Columns()
	if !o.Resources.All {
		o.Columns = columns
	}
	for _, check := range []func(context.Context) error{o.checkResourcesOnClusters, c.removeEarlierAttempt} {
		if err := check(ctx); err != nil {
			c.removeCluster()
			return nil, c.redactor.Error(err)
		}
	}
	shown := progress.New(o.Out, columns, c.Workers(o.plan.Chosen()), o.Volume)
	if o.Follow != nil {
		shown = o.Follow(shown)
	}
	c.progress = c.redactor.Progress(shown)
	return c, nil
}

// written redacts and concludes a report, writes it if there is a directory for it, and stores it if that was requested. It returns no report
// that could not be redacted.
func (c *conductor) written(whole v1alpha1.Report) (v1alpha1.Report, error) {
	whole, err := c.redactor.Report(whole)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	whole = report.Concluded(figures.Measure(whole))
	if c.ReportDir != "" {
		err = formats.Write(c.ReportDir, whole)
	}
	if c.StoreReport != nil {
		err = errors.Join(err, c.StoreReport(whole))
	}
	return whole, c.redactor.Error(err)
}

// printStacks prints the stacks of panics.
func (c *conductor) printStacks(err error) {
	if c.Volume != progress.Verbose {
		return
	}
	for _, stack := range crash.Stacks(err) {
		_, _ = fmt.Fprintf(c.ErrOut, "%s\n", c.redactor.Text(string(stack)))
	}
}

// remember stores how long behaviors took. Errors are ignored, because the next run would only be slower.
func (c *conductor) remember(whole v1alpha1.Report) {
	if c.DurationsFile != "" && !whole.Interrupted {
		_ = saveDurations(c.DurationsFile, c.Durations, whole)
	}
}
