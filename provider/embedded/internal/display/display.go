// Package display shows the progress of work that takes minutes.
package display

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// plainInterval is the time between lines without a terminal.
const plainInterval = 30 * time.Second

// Display shows how far some work is: a live bar on a terminal, elsewhere a line every 30 seconds.
type Display struct {
	out   io.Writer
	verb  string
	stage func() string
	start time.Time
	// live draws the bar on a terminal. Elsewhere it draws nothing, and lines are written at intervals until done.
	live  *mpb.Progress
	bar   *mpb.Bar
	done  chan struct{}
	ended sync.WaitGroup
}

// Start shows the progress of work until Stop is called. Its verb is that of the lines, as in "still building", and stage describes the
// current state. If the output is nil, nothing is shown. Set calls stage on a terminal, so a lock that stage takes must not be held then.
func Start(out io.Writer, verb string, stage func() string) *Display {
	if out == nil {
		out = io.Discard
	}
	d := &Display{out: out, verb: verb, stage: stage, start: time.Now(), done: make(chan struct{})}
	shown, ok := out.(interface{ Terminal() *os.File })
	if ok && shown.Terminal() != nil {
		d.draw(shown.Terminal())
	} else {
		d.draw(nil)
		d.ended.Go(d.report)
	}
	return d
}

// draw creates the bar, which is removed when the work ends, and shows it on a terminal.
func (d *Display) draw(terminal io.Writer) {
	d.live = mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(30))
	d.bar = d.live.AddBar(0, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Elapsed(decor.ET_STYLE_MMSS)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return d.stage() })),
	)
}

// report writes lines at intervals.
func (d *Display) report() {
	ticker := time.NewTicker(plainInterval)
	defer ticker.Stop()
	for {
		select {
		case <-d.done:
			return
		case <-ticker.C:
			d.Print()
		}
	}
}

// Print writes a line with the current stage.
func (d *Display) Print() {
	_, _ = fmt.Fprintf(d.out, "  still %s: %s, %s so far\n", d.verb, d.stage(), d.Elapsed())
}

// Set sets how much is done, in any unit, and how much there is; 0 while it is unknown.
func (d *Display) Set(done, total int64) {
	d.bar.SetTotal(total, false)
	d.bar.SetCurrent(done)
}

// Elapsed is the time since the start, in seconds.
func (d *Display) Elapsed() time.Duration { return time.Since(d.start).Round(time.Second) }

// Stop ends the display.
func (d *Display) Stop() {
	close(d.done)
	d.ended.Wait()
	d.bar.Abort(true)
	d.live.Wait()
}
