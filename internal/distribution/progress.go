package distribution

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	// plainInterval is how often a build says that it is alive where there is no terminal.
	plainInterval = 30 * time.Second
	// liveInterval is how often the line in a terminal is redrawn.
	liveInterval = 500 * time.Millisecond
	// rememberedLines is how many of the last lines of a build that failed its error shows.
	rememberedLines = 20
)

// progress tells people how a build is coming along, from the lines the go command prints while it works.
type progress struct {
	out     io.Writer
	version Version
	main    string                   // the path of the package that is compiled last, and linked
	bar     *progressbar.ProgressBar // nil where out is not a terminal
	start   time.Time
	done    chan struct{}
	ended   sync.WaitGroup

	mu       sync.Mutex
	fetched  int // modules
	compiled int // packages
	total    int // packages, 0 while it is not known
	linking  bool
	last     []string
}

// startProgress announces the build and then keeps saying how far it is until stop is called.
func startProgress(out io.Writer, version Version, main string) *progress {
	if out == nil {
		out = io.Discard
	}
	p := &progress{out: out, version: version, main: main, start: time.Now(), done: make(chan struct{})}
	fmt.Fprintf(out, "Building Kubernetes %s from source. The first build takes some minutes, later ones seconds.\n", version)
	interval := plainInterval
	if file, isFile := out.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		interval = liveInterval
		p.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(out), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(false),
			progressbar.OptionShowCount(), progressbar.OptionSetWidth(30))
	}
	p.ended.Go(func() { p.report(interval) })
	return p
}

func (p *progress) report(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
			p.show()
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		fmt.Fprintf(p.out, "  still building: %s, %s so far\n", p.stage(), time.Since(p.start).Round(time.Second))
		return
	}
	done := p.compiled
	if p.linking {
		done = p.total // the others were compiled by an earlier build
	}
	p.bar.Describe(p.stage())
	_ = p.bar.Set(done) // a terminal that cannot be written to is no reason to fail
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
	defer p.mu.Unlock()
	p.total = packages
	if p.bar != nil {
		p.bar.ChangeMax(packages)
	}
}

// line takes one line of the go command: a module it fetches, a package it compiles, or something worth remembering.
func (p *progress) line(line string) {
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
}

// lastWords are the last lines that were neither a module nor a package.
func (p *progress) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(p.last), func(line string) bool { return line == "" }), "\n")
}

// stop ends the report, and says how long the build took when it succeeded.
func (p *progress) stop(succeeded bool) {
	close(p.done)
	p.ended.Wait()
	if p.bar != nil {
		_ = p.bar.Finish() // removes the line
	}
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
