// Package browser tests report.html and the site of claims in a real browser, and junit.xml in common viewers. It contains only tests. They need Chromium and the
// packages of package.json, and are skipped without them.
package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/html"
)

// waitTimeout limits how long a page may take to reach the expected state.
const waitTimeout = 3 * time.Minute

// allocator starts the browser, without a network, so that attempts of a page to load something fail visibly.
var allocator, stop = chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
	chromedp.NoSandbox,
	chromedp.DisableGPU,
	chromedp.Flag("disable-quic", true),
	chromedp.Flag("disable-component-update", true),
	chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"),
)...)

// theTab starts the browser with the one tab in which all tests open their pages: both take longer to open than a page.
var theTab = sync.OnceValues(func() (context.Context, error) {
	ctx, _ := chromedp.NewContext(allocator)
	return ctx, chromedp.Do(ctx)
})

func TestMain(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
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

// tab is the browser's tab while it shows the page of a test.
type tab struct {
	*testing.T
	ctx context.Context

	mu sync.Mutex
	// messages are what the page wrote to the console, as JSON, and requests the addresses that it requested.
	messages, requests []string
}

// look describes the reader's device.
type look struct {
	width, height int64
	scheme        string
	scripts       bool
}

var (
	desktop = look{1440, 1000, "light", true}
	dark    = look{1440, 1000, "dark", true}
	narrow  = look{320, 700, "light", true}
)

// open opens a report. A test opens one page. When the test ends, the page must have written nothing to the console, including violations
// of its policy, and must have requested only itself.
func open(t *testing.T, r v1alpha1.Report, l look) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	var content bytes.Buffer
	if err := html.Write(&content, r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := newTab(t, l)
	p.goTo("file://" + file)
	t.Cleanup(func() { p.checkQuiet(file) })
	return p
}

// newTab prepares the tab for the page of a test. Without a browser the test is skipped.
func newTab(t *testing.T, l look) *tab {
	t.Helper()
	ctx, err := theTab()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("not tested in a browser: neither Chromium nor Chrome is on PATH; on Debian and Ubuntu `make browser-deps` installs one")
	}
	p := &tab{T: t}
	p.must(err)
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithCancel(ctx)
	t.Cleanup(cancel)
	p.must(chromedp.Listen(p.ctx, p.note))
	p.see(l)
	t.Cleanup(func() { p.goTo("about:blank") })
	return p
}

// see shows the page on another device.
func (p *tab) see(l look) {
	p.Helper()
	p.do(chromedp.EmulateViewport(l.width, l.height))
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	})
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !l.scripts})
}

// before runs a script in the test's pages before their own.
func (p *tab) before(script string) {
	p.Helper()
	added := call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	p.Cleanup(func() {
		call(p, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams(added))
	})
}

// note records what the page writes to the console and what it requests.
func (p *tab) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled, *runtime.EventExceptionThrown, *log.EventEntryAdded:
		message, err := json.Marshal(e)
		p.messages = append(p.messages, fmt.Sprint(string(message), err))
	}
}

// checkQuiet fails the test when the page reported an error or requested anything except its own files.
func (p *tab) checkQuiet(files string) {
	p.Helper()
	p.value("true") // events that the page caused before arrive before the answer
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, message := range p.messages {
		p.Errorf("the console shows %s", message)
	}
	for _, request := range p.requests {
		if !strings.HasPrefix(request, "file://"+files) {
			p.Errorf("the page requests %s", request)
		}
	}
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// call calls a method of the browser.
func call[P, R any](p *tab, method cdp.Command[P, R], parameters P) R {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitTimeout)
	defer cancel()
	result, err := chromedp.Call(ctx, method, parameters)
	p.must(err)
	return result
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
