// Package progress shows a run while it goes on: live in a terminal, a plain line for each behaviour elsewhere.
package progress

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
)

// Volume is how much a run says.
type Volume int

const (
	// Normal says what ended, and the story of what did not hold.
	Normal Volume = iota
	// Quiet says only what did not hold.
	Quiet
	// Verbose says what begins, too, and the statement of each behaviour.
	Verbose
)

// Progress shows a run. It is told what happens, one thing at a time, and is closed when the run has ended.
type Progress interface {
	io.Closer
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

// New chooses how to show a run: live when out is a terminal that can move its cursor and nobody asked for less or
// more, in lines otherwise.
func New(out io.Writer, clusters, workers int, volume Volume) Progress {
	lines := newLines(out, clusters, workers, volume)
	terminal, is := out.(*os.File)
	if is && volume == Normal && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(terminal.Fd())) {
		return newLive(terminal, lines)
	}
	return forCI(lines)
}
