package build

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/display"
)

// rememberedLines is how many of the last lines of a failed build its error contains.
const rememberedLines = 20

// progress reports the progress of a build, from the output of the go command.
type progress struct {
	*display.Display
	out  io.Writer
	main string // the path of the package that is compiled last, and linked

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
	p := &progress{out: out, main: main}
	fmt.Fprintf(out, "Building %s %s from source. The first build takes about %s, later ones seconds.\n",
		target.title, version, target.estimate(runtime.NumCPU()))
	p.Display = display.Start(out, "building", p.stage)
	return p
}

// estimate describes the duration of a first build on an idle machine with this many cores.
func (t target) estimate(cores int) string {
	minutes := max(1, (t.work+cores-1)/cores)
	return fmt.Sprintf("%d min on %d core(s)", minutes, cores)
}

// stage describes what the build is doing.
func (p *progress) stage() string {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	p.Set(0, int64(packages))
}

// line handles one line of the go command: a module it fetches, a package it compiles, or a message.
func (p *progress) line(line string) {
	done, total := p.take(line)
	p.Set(int64(done), int64(total))
}

// take records a line, and returns how many packages are done, of how many.
func (p *progress) take(line string) (done, total int) {
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
		return p.total, p.total // the others were compiled by an earlier build
	}
	return p.compiled, p.total
}

// tail returns the last lines that describe neither a module nor a package.
func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(p.last), func(line string) bool { return line == "" }), "\n")
}

// stop ends the report, and writes how long a successful build took.
func (p *progress) stop(succeeded bool) {
	p.Stop()
	if succeeded {
		fmt.Fprintf(p.out, "  built in %s.\n", p.Elapsed())
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
