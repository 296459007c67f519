package progress

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// lines writes a line for each relevant event.
type lines struct {
	out *visible.Log
	// several is set when lines must contain the name of their cluster.
	several bool
	// workers is the maximum number of parallel workers.
	workers int
	volume  Volume
}

func newLines(out io.Writer, clusters, workers int, volume Volume) *lines {
	return &lines{out: visible.NewLog(out), several: clusters > 1, workers: workers, volume: volume}
}

// SettingUp writes nothing, because SetUp follows soon.
func (l *lines) SettingUp(string) {}

// SetUp prints the version and the findings of a cluster.
func (l *lines) SetUp(cluster v1alpha1.Cluster, chosen int) {
	if cluster.Problem != "" {
		if l.several { // for a single cluster the verdict contains it
			l.paint(cluster.Name, v1alpha1.Errored, "untested", cluster.Problem)
		}
		return
	}
	if l.volume == Quiet {
		for _, finding := range cluster.Preflight {
			l.found(cluster.Name, finding)
		}
		return
	}
	l.print(cluster.Name, "Kubernetes %s on %q: behaviors to run: %d, parallel workers: up to %d", cluster.ServerVersion, cluster.Name, chosen, l.workers)
	if cluster.Warning != "" {
		l.print(cluster.Name, "  warning: %s", cluster.Warning)
	}
	for _, finding := range cluster.Preflight {
		if finding.Severity != v1alpha1.OK {
			l.found(cluster.Name, finding)
		}
	}
}

// found prints a finding on one line.
func (l *lines) found(cluster string, finding v1alpha1.Finding) {
	if l.volume != Quiet || finding.Severity == v1alpha1.Skips {
		l.print(cluster, "  %s", report.FindingLine(finding))
	}
}

// Slow prints a warning with an estimate.
func (l *lines) Slow(cluster string, latency preflight.Latency, takes time.Duration) {
	if l.volume == Quiet {
		return
	}
	l.print(cluster, "  warning: the cluster is slow (reads take %s): waits are %.1f times as long, and the run takes about %s",
		latency.Read.Round(time.Millisecond), latency.Slowness(), takes.Round(time.Second))
}

// Began prints the start of a behavior, if verbose.
func (l *lines) Began(cluster, id string) {
	if l.volume == Verbose {
		l.print(cluster, "%-11s %s", "started", id)
	}
}

// Ended prints the result of a behavior, with the location and the message of a failure.
func (l *lines) Ended(cluster string, result v1alpha1.Result) {
	if l.volume == Quiet && (result.Outcome == v1alpha1.Passed || result.Outcome == v1alpha1.Known || result.Outcome == v1alpha1.Skipped) {
		return
	}
	took := time.Duration(result.Seconds * float64(time.Second)).Round(time.Millisecond)
	reason := ""
	if result.Reason != "" {
		reason = ": " + result.Reason
	}
	l.paint(cluster, result.Outcome, string(result.Outcome), fmt.Sprintf("%s (%s)%s", result.ID, took, reason))
	if l.volume == Verbose || result.Failure != nil {
		l.indent(cluster, result.Statement)
	}
	if result.Failure != nil {
		l.indent(cluster, result.Failure.Location)
		l.indent(cluster, result.Failure.Message)
		l.indent(cluster, promised(result.Behavior))
	}
}

// promised returns the source of a behavior's promise or observation.
func promised(behavior v1alpha1.Behavior) string {
	where := cmp.Or(behavior.SourceURL(), behavior.Source)
	switch {
	case where == "":
		return ""
	case behavior.Level == v1alpha1.Observed:
		return "Observed in " + where
	case behavior.Promise != "":
		return fmt.Sprintf("Promised in %s: %q", where, behavior.Promise)
	}
	return "Promised in " + where
}

// Retrying prints that an errored behavior is retried, and why, if verbose.
func (l *lines) Retrying(cluster string, result v1alpha1.Result) {
	if l.volume == Verbose {
		l.paint(cluster, v1alpha1.Interrupted, "retrying", result.ID+": "+result.Reason)
	}
}

// colors are the colors of the outcomes; fatih/color disables them for NO_COLOR and outside terminals.
var colors = map[v1alpha1.Outcome]*color.Color{
	v1alpha1.Passed:      color.New(color.FgGreen),
	v1alpha1.Failed:      color.New(color.FgRed, color.Bold),
	v1alpha1.Errored:     color.New(color.FgRed),
	v1alpha1.Outdated:    color.New(color.FgRed, color.Bold),
	v1alpha1.Known:       color.New(color.FgYellow),
	v1alpha1.Deviated:    color.New(color.FgYellow),
	v1alpha1.Interrupted: color.New(color.FgYellow),
	v1alpha1.Skipped:     color.New(color.FgCyan),
	v1alpha1.Filtered:    color.New(color.FgCyan),
}

// TearingDown prints that the cleanup starts.
func (l *lines) TearingDown(cluster string) {
	if l.volume != Quiet {
		l.print(cluster, "deleting the run's objects on %q", cluster)
	}
}

// Close has no effect.
func (l *lines) Close() error { return nil }

func (l *lines) indent(cluster, text string) {
	for line := range strings.Lines(text) {
		l.print(cluster, "            %s", strings.TrimRight(line, "\n"))
	}
}

func (l *lines) print(cluster, format string, values ...any) {
	_ = l.out.Print(l.prefix(cluster), fmt.Sprintf(format+"\n", values...))
}

// paint prints a word in the color of an outcome, as a column, and a text.
func (l *lines) paint(cluster string, outcome v1alpha1.Outcome, word, text string) {
	_ = l.out.Print(l.prefix(cluster), visible.Own(colors[outcome].Sprintf("%-11s", word)), " "+text+"\n")
}

// prefix names a cluster in lines, if there are several.
func (l *lines) prefix(cluster string) string {
	if !l.several {
		return ""
	}
	return "[" + cluster + "] "
}
