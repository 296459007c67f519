package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobreport"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
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
downloads their reports, merges those of shards and clusters, writes every format of the report, and exits like a run.

The reports are in ConfigMaps that the Job owns. They can be collected during the run, after it, and again until the Job is deleted.

` + exitCodesUsage,
		Example: `  # Run the behaviors in 3 shards inside of the cluster, and collect the report
  kubectl apply -k deploy/job/overlays/sharded
  runner collect --kubeconfig FILE --job deletion-conformance --report-dir out`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command.Context()) },
	}
	addGroups(command, addClusters(&flags.clusters))
	command.Flags().StringVar(&flags.job, "job", "", "`NAME` of the Job")
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", namespaceOfJobs, "`NAME` of the namespace of the Job")
	command.Flags().StringVar(&flags.dir, "report-dir", "out", "`DIR` for junit.xml, ctrf.json, report.json, report.html and summary.md; created if it does not exist")
	return command
}

func (f *collectFlags) run(ctx context.Context) (failed error) {
	named, err := f.cluster()
	if err != nil {
		return usage(err)
	}
	redactor, err := redact.For(named, redact.Scope{Files: f.clusters.Kubeconfigs})
	if err != nil {
		return usage(err)
	}
	defer func() { failed = redactor.Error(failed) }()
	collector, err := f.collector(ctx, named[0].Provider.RESTConfig(), redactor.Writer(f.streams.Out))
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
	whole, ofRuns, err := collector.Reports(ctx, state, progress)
	if err != nil {
		return err
	}
	if whole.RunID == "" {
		return exitWith(ExitRunError, ofRuns)
	}
	if whole, err = redactor.Report(whole); err != nil {
		return err
	}
	whole = report.Concluded(whole) // texts that follow from the results must be redacted, too
	if err := formats.Write(f.dir, whole); err != nil {
		return usage(err)
	}
	ended := newRunFlags(f.streams)
	ended.options.ReportDir = f.dir
	err = ended.conclude(whole, ofRuns)
	if errors.As(ofRuns, &jobreport.Incomplete{}) {
		return exitWith(ExitRunError, ofRuns)
	}
	return err
}

// cluster returns the cluster of the flags.
func (f *collectFlags) cluster() ([]clusters.Cluster, error) {
	if f.job == "" {
		return nil, errors.New("--job is required: the NAME of the Job to collect from")
	}
	named, err := f.clusters.Clusters()
	if err == nil && len(named) != 1 {
		err = fmt.Errorf("%d clusters are selected: select the one of the Job with --context", len(named))
	}
	return named, err
}

// collector returns the collector for the Job of the flags, which prints the output of its pods.
func (f *collectFlags) collector(ctx context.Context, config *rest.Config, out io.Writer) (*jobreport.Collector, error) {
	if err := environment.Reach(ctx, config); err != nil {
		return nil, err
	}
	reader, err := jobstore.NewReader(config, f.namespace, f.job)
	return &jobreport.Collector{
		Reader: reader, Job: f.job, Out: out, Interval: collectInterval, Interrupted: ExitInterrupted, Untested: ExitUntested,
	}, err
}
