// Package progress shows a run while it goes on: live in a terminal, a plain line for each behaviour elsewhere.
package progress

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/deletion-conformance/deletion-conformance/internal/run"
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

// Progress shows a run, and must be closed when the run has ended.
type Progress interface {
	run.Progress
	io.Closer
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
