package browser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/html"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

const (
	// shown are the visible rows of behaviors.
	shown = `[...document.querySelectorAll('tr[data-row]')].filter((row) => row.offsetParent)`
	// ready is true once the script has set the page up.
	ready = `document.querySelector('form.filter output').textContent !== ''`
	// drawn is true when the dialog shows a timeline.
	drawn = `document.querySelector('dialog[open] svg.timeline[role=img]')`
	// filled is true when the dialog has content. Until then it is smaller, and a click may miss what moves.
	filled = `document.querySelector('dialog[open] .content > *')`
)

func TestPage(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"opens with the verdict":               opensWithTheVerdict,
		"says that nothing was tested":         saysThatNothingWasTested,
		"filters":                              filters,
		"shows timelines":                      showsTimelines,
		"moves between cells":                  movesBetweenCells,
		"opens the cell of an address":         opensTheCellOfAnAddress,
		"works by keyboard":                    worksByKeyboard,
		"fits narrow screens":                  fitsNarrowScreens,
		"follows the color scheme":             followsTheColorScheme,
		"prints with what is folded open":      printsUnfolded,
		"says what it can without scripts":     worksWithoutScripts,
		"shows hostile text as text":           showsHostileTextAsText,
		"is accessible":                        isAccessible,
		"opens a large report":                 opensLargeReports,
		"draws hundreds of objects on request": drawsHundredsOfObjects,
		"folds canaries into one lane":         foldsCanaries,
		"tells what a webhook was asked":       tellsWhatAWebhookWasAsked,
		"hides what was not selected":          hidesWhatWasNotSelected,
		"explains its words":                   explainsItsWords,
		"links a promise to its page":          linksAPromiseToItsPage,
		"groups errors with one cause":         groupsErrorsWithOneCause,
		"tells who wrote a change":             tellsWhoWroteAChange,
	} {
		t.Run(name, test)
	}
}

func opensWithTheVerdict(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Sample(), desktop)
	p.is(ready)
	g.Expect(p.text(`document.title`)).To(Equal("not conformant – deletion conformance"))
	g.Expect(p.text(`document.querySelector('h1').textContent`)).To(Equal("not conformant"))
	g.Expect(p.text(`document.querySelector('.counts .failed').innerText`)).To(MatchRegexp(`^1\s+failed$`))
	g.Expect(p.number(shown+`.length`)).To(Equal(7.0), "one was not selected")
	g.Expect(p.text(`document.querySelector('.reason').innerText`)).To(ContainSubstring("connection refused"))
	g.Expect(p.text(`document.querySelector('.clusters').innerText`)).To(ContainSubstring("could not be tested"))
	g.Expect(p.text(`document.querySelector('.times').innerText`)).To(ContainSubstring("Foreground, 1 level of dependents"))
	g.Expect(p.text(`document.querySelector('.reasons').innerText`)).To(ContainSubstring("no node is ready"))
}

func saysThatNothingWasTested(t *testing.T) {
	for name, r := range map[string]v1alpha1.Report{"no cluster": {}, "bare cluster": {Clusters: []v1alpha1.Cluster{{Name: "bare"}}}} {
		t.Run(name, func(t *testing.T) {
			p := open(t, report.Concluded(r), desktop)
			p.is(ready)
			NewWithT(t).Expect(p.text(`document.querySelector('h1').textContent`)).To(Equal("nothing tested"))
			p.is(`document.querySelector('.nothing').offsetParent`)
		})
	}
}

func filters(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Fleet(120, 3), desktop)
	p.is(ready)
	g.Expect(p.number(shown+`.length`)).To(Equal(118.0), "two were not selected")

	p.do(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "Foreground blocking"))
	p.is(`document.querySelector('output').textContent === '3 of 120 behaviors'`)
	g.Expect(p.text(shown + `.map((row) => row.querySelector('code').textContent).join()`)).To(Equal(
		"cascade.foreground.blocking-dependents-first,cascade.foreground.bottom-up,cascade.foreground.late-dependent"))
	g.Expect(p.number(`[...document.querySelectorAll('#results tr.group')].filter((row) => row.offsetParent).length`)).To(Equal(1.0), "empty groups go")

	p.click(`form .all`)
	p.is(`document.querySelector('output').textContent === '118 behaviors, and 2 that were not selected are hidden'`)
	p.click(`input[value=deviated]`)
	p.is(`document.querySelector('output').textContent === '3 of 120 behaviors'`)
	p.click(`input[value=skipped]`)
	p.is(`document.querySelector('output').textContent === '6 of 120 behaviors'`)
	p.click(`input[value=extended]`)
	g.Expect(p.text(shown + `.map((row) => row.dataset.level).join()`)).To(Equal("extended"))
	p.click(`form .all`)
	p.click(`input[name=differ]`)
	g.Expect(p.value(shown + `.every((row) => new Set([...row.querySelectorAll('td')].map((cell) => cell.className)).size > 1)`)).To(BeTrue())

	p.do(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "no such thing"))
	p.is(`document.querySelector('.nothing').offsetParent`)
}

func showsTimelines(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Sample(), desktop)
	p.is(ready)
	p.click(`tr[data-row] td.failed`)
	p.is(drawn)
	dialog := p.text(`document.querySelector('dialog').innerText`)
	g.Expect(dialog).To(ContainSubstring("on kind-a"))
	g.Expect(dialog).To(ContainSubstring("to come after\n    <string>: DELETED child"))
	g.Expect(dialog).To(ContainSubstring("ConfigMap child: finalizers deletion-conformance.github.io/hold"))
	g.Expect(dialog).To(ContainSubstring("suites/cascade/foreground.go:57"))
	g.Expect(dialog).To(ContainSubstring("took 1.50 s"))

	const svg = `document.querySelector('dialog svg.timeline[role=img]')`
	g.Expect(p.text(svg + `.textContent`)).To(And(ContainSubstring("ConfigMap owner"), ContainSubstring("foregroundDeletion"), ContainSubstring("PATCH 422"), ContainSubstring("owned by ConfigMap owner (blocking)")))
	g.Expect(p.number(svg + `.querySelectorAll('.event').length`)).To(Equal(5.0))
	g.Expect(p.number(svg + `.querySelectorAll('.request').length`)).To(Equal(4.0))
	g.Expect(p.number(svg + `.querySelectorAll('.terminating').length`)).To(Equal(1.0))
	g.Expect(p.number(`document.querySelectorAll('dialog .steps tbody tr').length`)).To(Equal(9.0))
	steps := p.text(`document.querySelector('dialog .steps').innerText`)
	g.Expect(steps).To(And(ContainSubstring("+ deletionTimestamp"), ContainSubstring("+ finalizer foregroundDeletion"), ContainSubstring("metadata.finalizers: Forbidden"), ContainSubstring("warning: mind the gap")))

	at := p.number(svg + `.querySelector('.event.MODIFIED path').getBBox().x`)
	p.click(`dialog .chip`)
	g.Expect(p.number(svg+`.querySelector('.event.MODIFIED path').getBBox().x`)).To(BeNumerically("<", at), "true to scale, the first 14 of 55 ms stand further left")

	p.press(kb.Escape)
	p.is(`!document.querySelector('dialog').open`)
	g.Expect(p.text(`document.activeElement.className`)).To(Equal("failed"), "the focus goes back to the cell")
}

func movesBetweenCells(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Fleet(30, 3), desktop)
	p.is(ready)
	p.click(`tr[data-row] td`)
	p.is(drawn)
	before := p.text(`document.querySelector('#cell-title').textContent`)
	p.click(`[data-move="0,1"]`)
	p.is(`document.querySelector('dialog .cluster').textContent === 'on gke_acme-prod_europe-west4_main'`)
	p.is(filled)
	p.click(`[data-move="0,1"]`)
	p.is(`document.querySelector('[data-move="0,1"]').disabled`)
	g.Expect(p.text(`document.querySelector('#cell-title').textContent`)).To(Equal(before))
	p.is(filled)
	p.click(`[data-move="1,0"]`)
	p.is(fmt.Sprintf(`document.querySelector('#cell-title').textContent !== %q`, before))
	p.is(filled)
	p.click(`dialog .close`)
	p.is(`!document.querySelector('dialog').open`)
}

func opensTheCellOfAnAddress(t *testing.T) {
	p := open(t, reporttest.Fleet(30, 3), desktop)
	p.is(ready)
	p.click(`tr[data-row="7"] td:nth-of-type(3)`)
	p.is(drawn)
	address := p.text(`location.href`)
	title := p.text(`document.querySelector('#cell-title').textContent`)
	p.goTo("about:blank")
	p.goTo(address)
	p.is(drawn)
	p.is(fmt.Sprintf(`document.querySelector('#cell-title').textContent === %q`, title))
	p.is(`document.querySelector('dialog .cluster').textContent.includes('arn:aws:eks')`)
}

func worksByKeyboard(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Fleet(30, 3), desktop)
	p.is(ready)
	const focus = `(() => { const cell = document.activeElement; return cell.parentElement.dataset.row + '/' + [...cell.parentElement.querySelectorAll('td')].indexOf(cell) })()`
	for tabs := 0; p.text(`document.activeElement.tagName`) != "TD"; tabs++ {
		if tabs > 40 {
			t.Fatal("the matrix is not reached by the tab key")
		}
		p.press(kb.Tab)
	}
	p.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowRight)
	g.Expect(p.text(focus)).To(Equal("2/1"))
	g.Expect(p.text(`getComputedStyle(document.activeElement).outlineStyle`)).To(Equal("solid"), "the focus is seen")
	p.press(kb.End)
	g.Expect(p.text(focus)).To(Equal("2/2"))
	p.press(kb.ArrowRight, kb.PageDown, kb.Home)
	g.Expect(p.text(focus)).To(Equal("12/0"))
	p.press(kb.Enter)
	p.is(drawn)
	g.Expect(p.text(`document.activeElement.id`)).To(Equal("cell-title"))
	for range 30 {
		p.press(kb.Tab)
		g.Expect(p.value(`document.activeElement === document.body || document.querySelector('dialog').contains(document.activeElement)`)).To(BeTrue(), "the focus stays in the dialog")
	}
	p.press(kb.Escape)
	p.is(`location.hash === ''`)
	g.Expect(p.text(focus)).To(Equal("12/0"))
	p.press(kb.Tab)
	g.Expect(p.text(`document.activeElement.tagName`)).NotTo(Equal("TD"), "the matrix is one tab stop")
}

func fitsNarrowScreens(t *testing.T) {
	for _, clusters := range []int{1, 3, 20} {
		t.Run(fmt.Sprintf("%d clusters", clusters), func(t *testing.T) {
			g := NewWithT(t)
			p := open(t, reporttest.Fleet(40, clusters), narrow)
			p.is(ready)
			g.Expect(p.number(`document.documentElement.scrollWidth`)).To(BeNumerically("<=", narrow.width), "the page itself does not scroll sideways")
			p.value(`document.querySelector('tr[data-row] td').click()`)
			p.is(drawn)
			g.Expect(p.number(`document.querySelector('dialog').scrollWidth`)).To(BeNumerically("<=", narrow.width))
		})
	}
}

// brightness is that of the background, from 0 to 255.
const brightness = `getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3`

func followsTheColorScheme(t *testing.T) {
	followsScheme(open(t, reporttest.Sample(), desktop))
}

func followsScheme(p *tab) {
	g := NewWithT(p)
	g.Expect(p.number(brightness)).To(BeNumerically(">", 200))
	p.see(dark)
	g.Expect(p.number(brightness)).To(BeNumerically("<", 50))
}

func printsUnfolded(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Sample(), look{1200, 900, "dark", true})
	p.is(ready)
	p.is(`document.querySelectorAll('.problem svg.timeline[role=img]').length === 3`)
	p.value(`addEventListener('beforeprint', () => {
		window.printed = { open: document.querySelectorAll('.problem[open]').length, ground: matchMedia('print').matches };
	})`)
	paper, err := chromedp.Run(p.ctx, chromedp.PrintToPDF())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(paper[:5])).To(Equal("%PDF-"))
	g.Expect(p.number(`window.printed.open`)).To(Equal(3.0))
	p.is(`document.querySelectorAll('.problem[open]').length === 0`)
}

func worksWithoutScripts(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reporttest.Sample(), look{1200, 900, "light", false})
	g.Expect(p.number(shown + `.length`)).To(Equal(8.0))
	g.Expect(p.value(`document.querySelector('form.filter').offsetParent === null`)).To(BeTrue())
	g.Expect(p.text(`document.querySelector('footer').innerText`)).To(ContainSubstring("Without scripts this page shows no timelines"))
}

func showsHostileTextAsText(t *testing.T) {
	const tags = `[...new Set([...document.querySelectorAll('*')].map((element) => element.tagName.toLowerCase()))].sort().join(' ')`
	const attributes = `[...document.querySelectorAll('*')].flatMap((element) => element.getAttributeNames()).filter((name) => /^on|^style$|^src$|^srcset$|^action$/.test(name)).length`
	var want string
	t.Run("harmless", func(t *testing.T) {
		p := openFailure(t, "harmless")
		want = p.text(tags)
	})
	for n, text := range reporttest.Hostile {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Logf("%q", text)
			g := NewWithT(t)
			p := openFailure(t, text)
			g.Expect(p.text(tags)).To(Equal(want), "the text makes elements")
			g.Expect(p.number(attributes)).To(BeZero(), "the text makes attributes")
			g.Expect(p.text(`[...document.querySelectorAll('[href]')].map((link) => link.getAttribute('href')).filter((href) => !href.startsWith('#')).join()`)).To(BeEmpty())
			shown := visible.Text(text)
			if text == "" {
				shown = "no message was recorded"
			}
			g.Expect(p.text(`document.querySelector('dialog .message').textContent`)).To(HavePrefix(shown), "and then the earlier tries")
			for _, place := range []string{"dialog h2", "dialog svg.timeline[role=img]", "dialog .steps", ".clusters", "#results", ".problems", ".reasons"} {
				content := strings.Join(strings.Fields(p.text(fmt.Sprintf("document.querySelector(%q).textContent", place))), " ")
				g.Expect(content).To(ContainSubstring(strings.Join(strings.Fields(visible.Text(text)), " ")), place)
			}
		})
	}
}

// openFailure opens a report with the text everywhere, and the timeline of its first failure.
func openFailure(t *testing.T, text string) *tab {
	t.Helper()
	p := open(t, reporttest.WithText(text), desktop)
	p.is(ready)
	p.click(`tr[data-row] td.failed`)
	p.is(drawn)
	return p
}

// view is a look and the rules of axe that the page is checked against in it.
type view struct {
	look
	rules string
}

// In dark colors nothing changes but the colors.
var (
	inLight  = view{desktop, `{}`}
	inDark   = view{dark, `{ runOnly: ['color-contrast', 'link-in-text-block'] }`}
	onNarrow = view{look{360, 800, "light", true}, `{}`}
)

// axe returns the source of axe.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(npmPackage(t, "axe-core"), "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// checkAccessible unfolds the page and fails the test for each violation that axe finds on it.
func (p *tab) checkAccessible(axe, what string, views ...view) {
	p.Helper()
	p.value("window.axe || (() => {" + axe + "})(); document.querySelectorAll('details').forEach((part) => { part.open = true }); true")
	for _, v := range views {
		p.see(v.look)
		found := p.text(`axe.run({ resultTypes: ['violations'], preload: false, ...` + v.rules + ` }).then((found) => found.violations.map((violation) =>
			violation.id + ': ' + violation.help + '\n  ' + violation.nodes.slice(0, 5).map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary).join('\n  ')).join('\n'))`)
		if found != "" {
			p.Errorf("%s, %s, %d pixels wide: %s", what, v.scheme, v.width, found)
		}
	}
}

func isAccessible(t *testing.T) {
	axe := axe(t)
	for name, seen := range map[string]struct {
		report v1alpha1.Report
		views  []view
	}{
		"everything":          {reporttest.Sample(), []view{inDark, inLight}},
		"a webhook's reviews": {reviewedReport(), []view{inDark, inLight}},
		"many clusters":       {reporttest.Fleet(24, 5), []view{onNarrow, inLight}},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, seen.report, desktop)
			p.is(ready)
			p.checkAccessible(axe, "the page", seen.views...)
			p.value(`document.querySelector('tr[data-row] td.failed').click()`)
			p.is(drawn)
			p.checkAccessible(axe, "a timeline open", seen.views...)
		})
	}
}

// opensLargeReports logs how long the page took to open.
func opensLargeReports(t *testing.T) {
	const mostBytes = 5_000_000
	g := NewWithT(t)
	large := reporttest.Fleet(200, 20)
	var content bytes.Buffer
	g.Expect(html.Write(&content, large)).To(Succeed())
	g.Expect(content.Len()).To(BeNumerically("<", mostBytes))
	p := open(t, large, desktop)
	p.is(ready)
	g.Expect(p.number(shown+`.length`)).To(Equal(198.0), "two were not selected")
	t.Logf("200 behaviors on 20 clusters: %d bytes, open after %.0f ms", content.Len(),
		p.number(`performance.getEntriesByType('navigation')[0].loadEventEnd`))
}

func drawsHundredsOfObjects(t *testing.T) {
	g := NewWithT(t)
	r := reporttest.Sample()
	failing := &r.Clusters[0].Results[1]
	failing.Timeline.Events = nil
	for n := range 200 {
		event := reporttest.Timeline("owner", fmt.Sprintf("child-%d", n)).Events[1]
		event.UID = types.UID(fmt.Sprintf("%08d", n))
		failing.Timeline.Events = append(failing.Timeline.Events, event)
	}
	p := open(t, r, desktop)
	p.is(ready)
	p.click(`tr[data-row] td.failed`)
	p.is(drawn)
	g.Expect(p.number(`document.querySelectorAll('dialog svg.timeline .name').length`)).To(BeNumerically("<=", 17))
	p.click(`dialog figure > button`)
	g.Expect(p.number(`document.querySelectorAll('dialog svg.timeline .name').length`)).To(BeNumerically(">=", 200))
}

func foldsCanaries(t *testing.T) {
	g := NewWithT(t)
	r := reporttest.Sample()
	failing := &r.Clusters[0].Results[1]
	canaries := reporttest.Timeline("canary", "canary-dependent")
	for i := range canaries.Requests {
		canaries.Requests[i].Object.UID, canaries.Requests[i].Object.Canary = "canary-canary", true
	}
	for i := range canaries.Events {
		event := &canaries.Events[i]
		event.UID, event.Canary = types.UID("canary-"+event.Name), true
	}
	failing.Timeline.Requests = append(failing.Timeline.Requests, canaries.Requests...)
	failing.Timeline.Events = append(failing.Timeline.Events, canaries.Events...)
	p := open(t, r, desktop)
	p.is(ready)
	p.click(`tr[data-row] td.failed`)
	p.is(drawn)
	g.Expect(p.text(`[...document.querySelectorAll('dialog svg.timeline .name')].map((name) => name.textContent).join()`)).To(Equal(
		"ConfigMap owner11111111,ConfigMap child22222222,Canaries2 objects of barriers"))
	g.Expect(p.number(`document.querySelectorAll('dialog .deletes line').length`)).To(Equal(1.0), "only what is tested shows across all lanes")
	g.Expect(p.number(`document.querySelectorAll('dialog svg.timeline .event').length - document.querySelectorAll('dialog .legend .event').length`)).To(Equal(10.0))
	g.Expect(p.number(`document.querySelectorAll('dialog .steps .canary').length`)).To(Equal(9.0))
}

func tellsWhatAWebhookWasAsked(t *testing.T) {
	g := NewWithT(t)
	p := open(t, reviewedReport(), desktop)
	p.is(ready)
	p.click(`tr[data-row] td.passed`)
	p.is(drawn)
	const drawing = `document.querySelector('dialog svg.timeline[role=img]')`
	g.Expect(p.number(drawing + `.querySelectorAll('.review').length`)).To(Equal(3.0))
	g.Expect(p.text(drawing + `.textContent`)).To(And(ContainSubstring("webhook: DELETE by the run itself allowed"), ContainSubstring("webhook: DELETE by a denied")))
	steps := p.text(`document.querySelector('dialog .steps').innerText`)
	g.Expect(steps).To(And(
		ContainSubstring("The API server asks the webhook: DELETE by the run itself: gracePeriodSeconds 20"),
		ContainSubstring("DELETE by system:node:a"), ContainSubstring("preconditions.uid 33333333-cccc"),
		ContainSubstring("stored as terminating with deletionGracePeriodSeconds 20"), ContainSubstring("denied: this one stays")))
}

// reviewedReport returns a report with webhook reviews, for a behavior that passed and for one that failed.
func reviewedReport() v1alpha1.Report {
	r := reporttest.Sample()
	for i := range 2 {
		r.Clusters[0].Results[i].Timeline = reporttest.Reviewed()
	}
	return r
}

// selection is a report of one cluster with one behavior that passed, one failure with a promise, one known failure and two that were not
// selected.
func selection() v1alpha1.Report {
	promised := reporttest.Failing(reporttest.Ran("x.b", "B", v1alpha1.Failed))
	promised.Source, promised.Promise = "concepts/architecture/garbage-collection", "Owner references tell."
	observed := reporttest.Because(reporttest.Failing(reporttest.Ran("x.c", "C", v1alpha1.Known)), "known failure: bug 1")
	observed.Source, observed.Level = "pkg/controller/garbagecollector/garbagecollector.go", v1alpha1.Observed
	return reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Ran("x.a", "A", v1alpha1.Passed), promised, observed,
		reporttest.Unstarted("x.d", "D", v1alpha1.Filtered), reporttest.Unstarted("y.a", "E", v1alpha1.Filtered)))
}

func hidesWhatWasNotSelected(t *testing.T) {
	g := NewWithT(t)
	p := open(t, selection(), desktop)
	p.is(ready)
	g.Expect(p.text(shown + `.map((row) => row.querySelector('code').textContent).join()`)).To(Equal("x.a,x.b,x.c"))
	g.Expect(p.text(`document.querySelector('output').textContent`)).To(Equal("3 behaviors, and 2 that were not selected are hidden"))
	g.Expect(p.text(`document.querySelector('.chip.filtered').innerText`)).To(ContainSubstring("not selected"))
	p.click(`input[value=filtered]`)
	g.Expect(p.text(shown + `.map((row) => row.querySelector('code').textContent).join()`)).To(Equal("x.d,y.a"))
	p.click(`form .all`)
	g.Expect(p.number(shown + `.length`)).To(Equal(3.0))

	page := p.text(`location.href.split('#')[0]`)
	p.goTo("about:blank")
	p.goTo(page + "#y.a@a")
	p.is(noted)
	p.is(`document.querySelector('dialog h2').textContent === 'E'`)
	g.Expect(p.text(`document.querySelector('dialog .pill').textContent`)).To(Equal("not selected"))
}

// noted is true when the dialog shows something, if not a timeline.
const noted = `document.querySelector('dialog') && document.querySelector('dialog').open && document.querySelector('dialog .content').childElementCount > 0`

func explainsItsWords(t *testing.T) {
	g := NewWithT(t)
	p := open(t, selection(), desktop)
	p.is(ready)
	p.click(`.words > summary`)
	g.Expect(p.text(`document.querySelector('.words').innerText`)).To(And(ContainSubstring("not selected"), ContainSubstring("extended"),
		ContainSubstring("simulated-node"), ContainSubstring("the garbage collector")))
}

func linksAPromiseToItsPage(t *testing.T) {
	g := NewWithT(t)
	p := open(t, selection(), desktop)
	p.is(ready)
	p.click(`tr[data-row] td.failed`)
	p.is(drawn)
	g.Expect(p.text(`document.querySelector('dialog .promise').innerText`)).To(Equal(`Promised in concepts/architecture/garbage-collection: Owner references tell.`))
	g.Expect(p.text(`document.querySelector('dialog .promise a').href`)).To(Equal("https://kubernetes.io/docs/concepts/architecture/garbage-collection/"))
	// The browser reports later that the dialog was closed. By then it shows another cell.
	p.value(`new Promise((reported) => {
		const dialog = document.querySelector('dialog');
		dialog.addEventListener('close', () => reported(), { once: true });
		dialog.close();
		document.querySelector('tr[data-row] td.known').click();
	})`)
	p.is(drawn)
	g.Expect(p.text(`location.hash`)).To(Equal("#x.c@a"))
	g.Expect(p.text(`document.querySelector('dialog .promise').innerText`)).To(Equal(`Observed in pkg/controller/garbagecollector/garbagecollector.go`))
	g.Expect(p.text(`document.querySelector('dialog .message').innerText`)).To(HavePrefix("known failure: bug 1"))
}

func groupsErrorsWithOneCause(t *testing.T) {
	g := NewWithT(t)
	errored := func(id string) v1alpha1.Result {
		return reporttest.Because(reporttest.Ran(id, id, v1alpha1.Errored), "connection reset by peer")
	}
	p := open(t, reporttest.Run("r", 0, reporttest.OnCluster("a", errored("x.a"), errored("x.b"))), desktop)
	p.is(ready)
	g.Expect(p.text(`document.querySelector('.problem summary').innerText`)).To(ContainSubstring("2 behaviors"))
	p.click(`.problem > summary`)
	p.click(`.problem li:nth-child(2) button`)
	p.is(drawn)
	g.Expect(p.text(`document.querySelector('dialog h2').textContent`)).To(Equal("x.b"))
}

func tellsWhoWroteAChange(t *testing.T) {
	g := NewWithT(t)
	failed := reporttest.Failing(reporttest.Ran("x.a", "a", v1alpha1.Failed))
	last := &failed.Timeline.Events[len(failed.Timeline.Events)-1]
	last.Writers, last.Finalizers = []string{"wiper"}, []string{"foregroundDeletion"}
	last.Released = []v1alpha1.Release{{Finalizer: "foregroundDeletion", SetBy: []string{"operator"}}}
	p := open(t, reporttest.Run("r", 0, reporttest.OnCluster("a", failed)), desktop)
	p.is(ready)
	p.click(`tr[data-row] td.failed`)
	p.is(drawn)
	g.Expect(p.text(`document.querySelector('dialog .steps').innerText`)).To(And(
		ContainSubstring("− finalizer foregroundDeletion (it was set by operator)"), ContainSubstring("written by wiper")))
}
