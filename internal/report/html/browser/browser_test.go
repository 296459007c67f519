// Package browser tests report.html and the site of claims in a real browser, and junit.xml in common viewers. It contains only tests. They need Chromium and the
// packages of package.json, and are skipped without them.
package browser

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/html"
)

// waitTimeout limits how long a page may take to reach the expected state.
const waitTimeout = 3 * time.Minute

// newBrowser starts Chromium without a network, so that attempts of a page to load something fail visibly.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	binary := chromium(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(binary),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"),
	)
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	return browser
}

// chromium returns the path of a browser; without one the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("not tested in a browser: none of %s is on PATH; on Debian and Ubuntu `make browser-deps` installs one", strings.Join(names, ", "))
	return ""
}

// npmPackage returns the directory of a package that `npm ci` installed here; without it the test is skipped.
func npmPackage(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("node_modules", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("not tested with %s: it is not installed; `npm ci` in internal/report/html/browser (or `make browser-deps`) does that", name)
	}
	return dir
}

// tab is a page in the browser.
type tab struct {
	*testing.T
	ctx context.Context

	// looked is closed when the console shows the last message of the test.
	looked chan struct{}

	mu       sync.Mutex
	messages []string
	requests []string
}

// looked is the last message that a test writes to the console, so that all earlier ones are known to have arrived.
const looked = "the page was looked at"

// look describes the reader's device.
type look struct {
	width, height int64
	scheme        string
	scripts       bool
}

var desktop = look{1440, 1000, "light", true}

// open opens a report in a new tab. When the test ends, the page must have written nothing to the console, including violations of its
// policy, and must have requested only itself.
func open(t *testing.T, browser context.Context, r v1alpha1.Report, l look) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	var content bytes.Buffer
	if err := html.Write(&content, r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := newTab(t, browser, l)
	p.goTo("file://" + file)
	t.Cleanup(func() { p.checkQuiet(file) })
	return p
}

func newTab(t *testing.T, browser context.Context, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx, looked: make(chan struct{})}
	// The first call creates the tab, which lives as long as that call's context, so the context must not have a deadline.
	p.must(chromedp.Do(ctx))
	p.do(chromedp.EmulateViewport(l.width, l.height))
	waiting, done := context.WithTimeout(ctx, waitTimeout)
	defer done()
	_, err := chromedp.Call(waiting, network.Enable, network.EnableParams{})
	p.must(err)
	_, err = chromedp.Call(waiting, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	})
	p.must(err)
	_, err = chromedp.Call(waiting, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !l.scripts})
	p.must(err)
	_, err = chromedp.Call(waiting, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	p.must(err)
	p.listen()
	return p
}

// metric returns one of the browser's metrics of the page; times are in seconds of the page's thread.
func (p *tab) metric(name string) float64 {
	p.Helper()
	metrics, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	p.must(err)
	for _, metric := range metrics.Metrics {
		if metric.Name == name {
			return metric.Value
		}
	}
	p.Fatalf("the browser knows no metric %q", name)
	return 0
}

// before runs a script in every page before the page's own.
func (p *tab) before(script string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	p.must(err)
}

// listen records what the page writes to the console and what it requests.
func (p *tab) listen() {
	requests := chromedp.Events(p.ctx, network.RequestWillBeSent)
	messages := chromedp.Console(p.ctx)
	go func() {
		for request, err := range requests {
			if err != nil {
				return
			}
			p.note(&p.requests, request.Request.URL)
		}
	}()
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if message.Text == looked {
				close(p.looked)
				return
			}
			p.note(&p.messages, message.String())
		}
	}()
}

func (p *tab) note(list *[]string, entry string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, entry)
}

// noted returns a copy of a recorded list.
func (p *tab) noted(list *[]string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(*list)
}

// checkQuiet fails the test when the page reported an error or requested anything except its own file.
func (p *tab) checkQuiet(file string) {
	p.Helper()
	if p.ctx.Err() != nil {
		return
	}
	p.value(fmt.Sprintf("console.info(%q)", looked))
	select {
	case <-p.looked:
	case <-time.After(waitTimeout):
		p.Error("the console never showed what the test wrote to it")
	}
	for _, message := range p.noted(&p.messages) {
		p.Errorf("the console says: %s", message)
	}
	for _, request := range p.noted(&p.requests) {
		if !strings.HasPrefix(request, "file://"+file) {
			p.Errorf("the page asks for %s", request)
		}
	}
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// do runs actions, each with a timeout.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout)
	defer cancel()
	p.must(chromedp.Do(ctx, actions...))
}

func (p *tab) goTo(address string) {
	p.Helper()
	p.do(chromedp.Navigate(address))
}

// click clicks on the first element of a selector, press types keys at the focus.
func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// value evaluates a script, waits for its promise, if any, and returns the result.
func (p *tab) value(script string) any {
	p.Helper()
	return evaluate[any](p, script)
}

func (p *tab) text(script string) string {
	p.Helper()
	return evaluate[string](p, script)
}

func (p *tab) number(script string) float64 {
	p.Helper()
	return evaluate[float64](p, script)
}

// is waits until a condition holds. The page's policy forbids chromedp's Poll, so it is evaluated repeatedly in a promise.
func (p *tab) is(condition string) {
	p.Helper()
	holds := evaluate[bool](p, fmt.Sprintf(`new Promise((resolve) => {
		const end = performance.now() + %d;
		const look = () => (%s) ? resolve(true) : performance.now() > end ? resolve(false) : setTimeout(look, 10);
		look();
	})`, waitTimeout.Milliseconds(), condition))
	if !holds {
		p.Fatalf("this never came true: %s", condition)
	}
}

func evaluate[T any](p *tab, script string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*waitTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%v, from %s", err, script)
	}
	return value
}
