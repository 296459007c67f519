package build

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// plainInterval is the time between progress lines without a terminal.
	plainInterval = 30 * time.Second
	// rememberedLines is how many of the last lines of a failed build its error contains.
	rememberedLines = 20
)

// progress reports the progress of a build, from the output of the go command.
type progress struct {
	out     io.Writer
	version *version.Version
	main    string // the path of the package that is compiled last, and linked
	start   time.Time
	// live draws the bar on a terminal. Elsewhere it draws nothing, and lines are written at intervals until done. Drawing the bar takes
	// the lock for the stage, so the lock must not be held while the bar is called.
	live  *mpb.Progress
	bar   *mpb.Bar
	done  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	fetched  int // modules
	compiled int // packages
	total    int // packages, 0 while unknown
	linking  bool
	last     []string
}

// startProgress announces the build and then reports its progress until stop is called.
func startProgress(out io.Writer, target target, version *version.Version, main string) *progress {
	if out == nil {
		out = io.Discard
	}
	p := &progress{out: out, version: version, main: main, start: time.Now(), done: make(chan struct{})}
	fmt.Fprintf(out, "Building %s %s from source. The first build takes about %s, later ones seconds.\n",
		target.title, version, target.estimate(runtime.NumCPU()))
	display, ok := out.(interface{ Terminal() *os.File })
	if ok && display.Terminal() != nil {
		p.draw(display.Terminal())
	} else {
		p.draw(nil)
		p.ended.Go(p.report)
	}
	return p
}

// estimate describes the duration of a first build on an idle machine with this many cores.
func (t target) estimate(cores int) string {
	minutes := max(1, (t.work+cores-1)/cores)
	return fmt.Sprintf("%d min on %d core(s)", minutes, cores)
}

// draw creates the bar, which is removed when the build ends, and shows it on a terminal.
func (p *progress) draw(terminal io.Writer) {
	p.live = mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(30))
	p.bar = p.live.AddBar(0, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Elapsed(decor.ET_STYLE_MMSS)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.stage()
		})),
	)
}

// report writes lines at intervals.
func (p *progress) report() {
	ticker := time.NewTicker(plainInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
			p.printStage()
		}
	}
}

func (p *progress) printStage() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "  still building: %s, %s so far\n", p.stage(), time.Since(p.start).Round(time.Second))
}

// stage describes what the build is doing.
func (p *progress) stage() string {
	switch {
	case p.total == 0:
		return fmt.Sprintf("%d modules fetched", p.fetched)
	case p.linking:
		return fmt.Sprintf("linking, after %d packages were compiled", p.compiled)
	}
	return fmt.Sprintf("%d of at most %d packages compiled", p.compiled, p.total)
}

// expect sets the number of packages. Go does not compile those that are in its cache.
func (p *progress) expect(packages int) {
	p.mu.Lock()
	p.total = packages
	p.mu.Unlock()
	p.bar.SetTotal(int64(packages), false)
}

// line handles one line of the go command: a module it fetches, a package it compiles, or a message.
func (p *progress) line(line string) {
	p.bar.SetCurrent(int64(p.take(line)))
}

// take records a line, and returns how many packages are done.
func (p *progress) take(line string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.fetched++
	case !strings.ContainsAny(line, " :#\t"):
		p.compiled++
		p.linking = p.linking || line == p.main
	default:
		p.last = append(p.last, line)
		p.last = p.last[max(0, len(p.last)-rememberedLines):]
	}
	if p.linking {
		return p.total // the others were compiled by an earlier build
	}
	return p.compiled
}

// tail returns the last lines that describe neither a module nor a package.
func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(p.last), func(line string) bool { return line == "" }), "\n")
}

// stop ends the report, and writes how long a successful build took.
func (p *progress) stop(succeeded bool) {
	close(p.done)
	p.ended.Wait()
	p.bar.Abort(true)
	p.live.Wait()
	if succeeded {
		fmt.Fprintf(p.out, "  built in %s.\n", time.Since(p.start).Round(time.Second))
	}
}

// lineWriter splits its input into lines.
type lineWriter struct {
	each func(line string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.each(string(line))
		w.rest = rest
	}
}

// flush passes on a last line without a newline.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.each(string(w.rest))
		w.rest = nil
	}
}
