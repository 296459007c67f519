// Package progress shows a running run: live in a terminal, otherwise as a line for each behavior.
package progress

import (
	"io"
	"os"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
)

// Volume is how much a run prints.
type Volume int

const (
	// Normal prints each result, with details of failures.
	Normal Volume = iota
	// Quiet prints only failures.
	Quiet
	// Verbose also prints starts, and the statement of each behavior.
	Verbose
)

// Progress shows a run. Its methods are not called concurrently. Close is called when the run has ended.
type Progress interface {
	io.Closer
	// SettingUp: the setup of a cluster starts.
	SettingUp(cluster string)
	// SetUp: the setup has ended; the cluster has the features that selected behaviors require.
	SetUp(cluster v1alpha1.Cluster, chosen int)
	// Slow: the cluster is slow, and the run takes about this long.
	Slow(cluster string, latency preflight.Latency, takes time.Duration)
	// Began: a behavior has started.
	Began(cluster, id string)
	// Ended: a behavior has ended.
	Ended(cluster string, result v1alpha1.Result)
	// Retrying: a behavior errored and is retried.
	Retrying(cluster string, result v1alpha1.Result)
	// TearingDown: the cleanup of a cluster starts.
	TearingDown(cluster string)
}

// New returns the progress for an output: live on a terminal that can move its cursor at the normal volume, otherwise lines.
func New(out io.Writer, clusters, workers int, volume Volume) Progress {
	lines := newLines(out, clusters, workers, volume)
	terminal := lines.out.Terminal()
	if terminal != nil && volume == Normal && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		return newLive(terminal, lines)
	}
	return forCI(lines)
}
