package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/injob"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobreport"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
	"github.com/deletion-conformance/deletion-conformance/internal/sonobuoy"
)

// fillJob sets what follows from the Job in which the runner runs: the shard, the id of the run, which attempts of an
// index share, and that webhooks are behind a Service.
func (f *runFlags) fillJob() (err error) {
	pod := injob.Current()
	if seed := pod.Seed(); seed != "" {
		f.options.RunID = environment.RunIDOf(seed)
	}
	if f.clusters.InCluster && pod.IP != "" && f.options.Settings.WebhookHost == "" {
		f.options.Settings.WebhookHost, f.options.Settings.WebhookService = pod.IP, true
	}
	f.options.Selection.Shard, err = pod.Shard(f.options.Selection.Shard)
	return err
}

// fillPlugin sets what follows from Sonobuoy: the directory of the reports, and where the progress goes.
func (f *runFlags) fillPlugin() (err error) {
	switch {
	case !f.sonobuoy:
		return nil
	case f.options.ReportDir != "":
		return fmt.Errorf("--%s and --report-dir are mutually exclusive", sonobuoyFlag)
	case f.storeReport:
		return fmt.Errorf("--%s and --%s are mutually exclusive", sonobuoyFlag, storeReportFlag)
	}
	if f.plugin, err = sonobuoy.Current("--" + sonobuoyFlag); err != nil {
		return err
	}
	f.options.ReportDir, f.options.Follow = f.plugin.ReportDir(), f.plugin.Follow
	return nil
}

const (
	storeReportFlag = "store-report"
	sonobuoyFlag    = "sonobuoy"
)

// recorded runs the runner. With --store-report it stores the output, the report and the end in the Job, and with --sonobuoy it hands over
// the reports, whatever the result is.
func (f *runFlags) recorded(ctx context.Context, run func() error) error {
	switch {
	case f.plugin != nil:
		err := run()
		if failed := f.plugin.Submit(); failed != nil {
			return errors.Join(err, exitWith(ExitRunError, failed))
		}
		return err
	case !f.storeReport:
		return run()
	}
	recorder, err := jobreport.Start(ctx, "--"+storeReportFlag)
	if err != nil {
		return usage(err)
	}
	f.options.Out, f.options.StoreReport = visible.NewLog(recorder.Tee(f.options.Out)), recorder.Store
	err = run()
	message := err
	if ended := (*exit)(nil); errors.As(err, &ended) {
		message = ended.err
	}
	if failed := recorder.End(codeOf(err), message); failed != nil {
		return errors.Join(err, exitWith(ExitRunError, failed))
	}
	return err
}
