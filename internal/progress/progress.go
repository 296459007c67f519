// Package progress shows a run while it goes on: one plain line for each behaviour that ends.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

// Lines writes a line for each thing that is worth one.
type Lines struct {
	out io.Writer
	// several says that lines must name their cluster.
	several bool
}

var _ run.Progress = &Lines{}

// NewLines makes a progress of lines for a run on that many clusters.
func NewLines(out io.Writer, clusters int) *Lines { return &Lines{out: out, several: clusters > 1} }

// Visiting says nothing: what comes of it is said soon.
func (l *Lines) Visiting(string) {}

// Visited says what a cluster is like.
func (l *Lines) Visited(cluster report.Cluster, chosen int) {
	if cluster.Problem != "" {
		l.say(cluster.Name, "%s", cluster.Problem)
		return
	}
	l.say(cluster.Name, "Kubernetes %s on %q, %d behaviours to judge", cluster.ServerVersion, cluster.Name, chosen)
	for _, capability := range cluster.Capabilities {
		if !capability.Present {
			l.say(cluster.Name, "  without %s: %s", capability.Need, capability.Reason)
		}
	}
}

// Began says nothing: a line for each end is enough.
func (l *Lines) Began(string, string) {}

// Ended says how a behaviour ended, with the whole story where it did not hold.
func (l *Lines) Ended(cluster string, result report.Result) {
	took := time.Duration(result.Seconds * float64(time.Second)).Round(time.Millisecond)
	l.say(cluster, "%-11s %s (%s)%s", result.Outcome, result.ID, took, reasonOf(result))
	if result.Failure == nil {
		return
	}
	for line := range strings.Lines(result.Statement + "\n" + result.Failure.Location + "\n" + result.Failure.Message) {
		l.say(cluster, "            %s", strings.TrimRight(line, "\n"))
	}
}

func reasonOf(result report.Result) string {
	if result.Reason == "" {
		return ""
	}
	return ": " + result.Reason
}

// Leaving says that the end takes some seconds.
func (l *Lines) Leaving(cluster string) {
	l.say(cluster, "removing what the run made on %q", cluster)
}

func (l *Lines) say(cluster, format string, values ...any) {
	if l.several {
		format = "[" + strings.ReplaceAll(cluster, "%", "%%") + "] " + format
	}
	_, _ = fmt.Fprintf(l.out, format+"\n", values...)
}
