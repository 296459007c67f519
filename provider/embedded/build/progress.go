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
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// plainInterval is how often a build says that it is alive where there is no terminal.
	plainInterval = 30 * time.Second
	// rememberedLines is how many of the last lines of a build that failed its error shows.
	rememberedLines = 20
)

// progress tells people how a build is coming along, from the lines the go command prints while it works.
type progress struct {
	out     io.Writer
	version *version.Version
	main    string // the path of the package that is compiled last, and linked
	start   time.Time
	// live draws the bar where out is a terminal; elsewhere it draws nothing, and a line is said now and then until done.
	// The bar asks for the stage while it is drawn, so nobody may hold the lock and talk to the bar.
	live  *mpb.Progress
	bar   *mpb.Bar
	done  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	fetched  int // modules
	compiled int // packages
	total    int // packages, 0 while it is not known
	linking  bool
	last     []string
}

// startProgress announces the build and then keeps saying how far it is until stop is called.
func startProgress(out io.Writer, target target, version *version.Version, main string) *progress {
	if out == nil {
		out = io.Discard
	}
	p := &progress{out: out, version: version, main: main, start: time.Now(), done: make(chan struct{})}
	fmt.Fprintf(out, "Building %s %s from source. The first build takes about %s, later ones seconds.\n",
		target.title, version, target.estimate(runtime.NumCPU()))
	if file, isFile := out.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		p.draw(file)
	} else {
		p.draw(nil)
		p.ended.Go(p.report)
	}
	return p
}

// estimate is how long a first build takes on an idle machine of so many cores, in words.
func (t target) estimate(cores int) string {
	minutes := max(1, (t.work+cores-1)/cores)
	return fmt.Sprintf("%d min on %d core(s)", minutes, cores)
}

// draw makes the bar, which goes when the build ends, and shows it if there is a terminal.
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

// report says now and then that the build is alive.
func (p *progress) report() {
	ticker := time.NewTicker(plainInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
			p.say()
		}
	}
}

func (p *progress) say() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "  still building: %s, %s so far\n", p.stage(), time.Since(p.start).Round(time.Second))
}

// stage is what the build is doing, in words.
func (p *progress) stage() string {
	switch {
	case p.total == 0:
		return fmt.Sprintf("%d modules fetched", p.fetched)
	case p.linking:
		return fmt.Sprintf("linking, after %d packages were compiled", p.compiled)
	}
	return fmt.Sprintf("%d of at most %d packages compiled", p.compiled, p.total)
}

// expect says how many packages there are. Those that Go still has from an earlier build are not compiled again.
func (p *progress) expect(packages int) {
	p.mu.Lock()
	p.total = packages
	p.mu.Unlock()
	p.bar.SetTotal(int64(packages), false)
}

// line takes one line of the go command: a module it fetches, a package it compiles, or something worth remembering.
func (p *progress) line(line string) {
	p.bar.SetCurrent(int64(p.take(line)))
}

// take notes a line, and returns how many packages need no more work.
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

// tail are the last lines that were neither a module nor a package.
func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(p.last), func(line string) bool { return line == "" }), "\n")
}

// stop ends the report, and says how long the build took when it succeeded.
func (p *progress) stop(succeeded bool) {
	close(p.done)
	p.ended.Wait()
	p.bar.Abort(true)
	p.live.Wait()
	if succeeded {
		fmt.Fprintf(p.out, "  built in %s.\n", time.Since(p.start).Round(time.Second))
	}
}

// lineWriter hands over what is written to it line by line.
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

// flush hands over a last line that has no end.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.each(string(w.rest))
		w.rest = nil
	}
}
