package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/jobreport"
	"github.com/deletion-conformance/deletion-conformance/internal/report/forms"
)

const (
	// namespaceOfJobs is the namespace of the Jobs of deploy/job.
	namespaceOfJobs = "deletion-conformance"
	// collectInterval is the time between two reads of a running Job.
	collectInterval = time.Second
)

// collectFlags are the flags of `runner collect`.
type collectFlags struct {
	streams        genericiooptions.IOStreams
	clusters       clusters.Flags
	job, namespace string
	dir            string
}

func newCollectCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &collectFlags{streams: streams}
	command := &cobra.Command{
		Use:   "collect --job NAME",
		Short: "Follow the run of a Job, and download its reports",
		Long: `Collect prints the output of the pods of a Job that runs the runner with --store-report, until the last one has ended. It then
downloads their reports, merges those of shards and clusters, writes every form of the report, and exits like a run.

The reports are in ConfigMaps that the Job owns. They can be collected during the run, after it, and again until the Job is deleted.

` + exitCodesUsage,
		Example: `  # Run the behaviors in 3 shards inside of the cluster, and collect the report
  kubectl apply -k deploy/job/overlays/sharded
  runner collect --kubeconfig FILE --job deletion-conformance --report-dir out`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command.Context()) },
	}
	flags.clusters.AddTo(command.Flags())
	command.Flags().StringVar(&flags.job, "job", "", "`NAME` of the Job")
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", namespaceOfJobs, "`NAME` of the namespace of the Job")
	command.Flags().StringVar(&flags.dir, "report-dir", "out", "`DIR` for junit.xml, ctrf.json, report.json, report.html and summary.md; created if it does not exist")
	return command
}

func (f *collectFlags) run(ctx context.Context) error {
	collector, err := f.collector(ctx)
	if err != nil {
		return err
	}
	state, progress, err := collector.Follow(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, jobstore.ErrNoJob), errors.Is(err, jobstore.ErrIndexes):
		return usage(fmt.Errorf("--job: %w", err))
	case err != nil:
		return err
	}
	whole, failed, err := collector.Reports(ctx, state, progress)
	if err != nil {
		return err
	}
	if whole.RunID == "" {
		return exitWith(ExitRunError, failed)
	}
	if err := forms.Write(f.dir, whole); err != nil {
		return usage(err)
	}
	ended := newRunFlags(f.streams)
	ended.options.ReportDir = f.dir
	err = ended.conclude(whole, failed)
	if errors.As(failed, &jobreport.Incomplete{}) {
		return exitWith(ExitRunError, failed)
	}
	return err
}

// collector returns the collector for the cluster and the Job of the flags.
func (f *collectFlags) collector(ctx context.Context) (*jobreport.Collector, error) {
	if f.job == "" {
		return nil, usage(errors.New("--job is required: the NAME of the Job to collect from"))
	}
	named, err := f.clusters.Clusters()
	if err != nil {
		return nil, usage(err)
	}
	if len(named) != 1 {
		return nil, usage(fmt.Errorf("%d clusters are selected: select the one of the Job with --context", len(named)))
	}
	config := named[0].Provider.RESTConfig()
	if err := environment.Reach(ctx, config); err != nil {
		return nil, err
	}
	reader, err := jobstore.NewReader(config, f.namespace, f.job)
	return &jobreport.Collector{
		Reader: reader, Job: f.job, Out: f.streams.Out, Interval: collectInterval, Interrupted: ExitInterrupted, Untested: ExitUntested,
	}, err
}
