package browser

import (
	"fmt"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/claim/claimtest"
	"github.com/deletion-conformance/deletion-conformance/internal/claim/site"
)

// claimSite writes a site of claims that alternate between a conformant implementation and one that fails, and returns its directory.
func claimSite(t *testing.T, projects, versions int) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	pages := site.New(dir, claimtest.Catalog(t))
	passed := claimtest.Of(t, "distro", "1")
	failed := claimtest.Of(t, "distro", "1", claimtest.Fails("finalizers.held", "it is gone"))
	for project := range projects {
		for version := range versions {
			of := passed
			if (project+version)%2 == 1 {
				of = failed
			}
			of.Implementation.Project, of.Implementation.Version = fmt.Sprintf("distro-%d", project), fmt.Sprintf("1.%d.0", version)
			claimtest.AddTo(t, pages.Add, of)
		}
	}
	g.Expect(pages.Write()).To(Succeed())
	return dir
}

// openSite opens a page of a site. The page must write nothing to the console, and request only files of the site.
func openSite(t *testing.T, dir, name string, l look) *tab {
	t.Helper()
	p := newTab(t, l)
	p.goTo("file://" + filepath.Join(dir, name))
	t.Cleanup(func() { p.checkQuiet(dir) })
	return p
}

// sitePages returns the names of one page of each kind.
func sitePages(t *testing.T, dir string) []string {
	t.Helper()
	g := NewWithT(t)
	claims, err := filepath.Glob(filepath.Join(dir, "claims", "*.html"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claims).NotTo(BeEmpty())
	claimed, err := filepath.Rel(dir, claims[0])
	g.Expect(err).NotTo(HaveOccurred())
	return []string{"index.html", "behaviors.html", "changes.html", "latency.html", "behaviors/finalizers.held.html", claimed}
}

func TestSite(t *testing.T) {
	dir := claimSite(t, 2, 3)
	for name, test := range map[string]func(*testing.T, string){
		"is accessible":            siteIsAccessible,
		"fits narrow screens":      siteFitsNarrowScreens,
		"follows the color scheme": siteFollowsTheColorScheme,
		"works by keyboard":        siteWorksByKeyboard,
		"opens with 200 claims":    siteOpensWithManyClaims,
	} {
		t.Run(name, func(t *testing.T) { test(t, dir) })
	}
}

func siteIsAccessible(t *testing.T, dir string) {
	axe := axe(t)
	for _, name := range sitePages(t, dir) {
		t.Run(name, func(t *testing.T) {
			openSite(t, dir, name, desktop).checkAccessible(axe, name, inLight, inDark, onNarrow)
		})
	}
}

func siteFitsNarrowScreens(t *testing.T, dir string) {
	for _, name := range sitePages(t, dir) {
		t.Run(name, func(t *testing.T) {
			p := openSite(t, dir, name, narrow)
			NewWithT(t).Expect(p.number(`document.documentElement.scrollWidth`)).To(BeNumerically("<=", narrow.width), "the page does not scroll sideways")
		})
	}
}

func siteFollowsTheColorScheme(t *testing.T, dir string) {
	followsScheme(openSite(t, dir, "index.html", desktop))
}

// siteWorksByKeyboard follows links from the matrix to the timeline of a failure.
func siteWorksByKeyboard(t *testing.T, dir string) {
	g := NewWithT(t)
	p := openSite(t, dir, "index.html", desktop)
	p.press("\t")
	g.Expect(p.text(`document.activeElement.textContent`)).To(Equal("Skip to the content"))
	p.press("\r")
	p.is(`location.hash === '#content'`)
	p.value(`document.querySelector('nav.site a[href="behaviors.html"]').focus()`)
	p.press("\r")
	p.is(`location.pathname.endsWith('/behaviors.html') && document.readyState === 'complete'`)
	p.value(`document.querySelector('a[href="behaviors/finalizers.held.html"]').focus()`)
	p.press("\r")
	p.is(`location.pathname.endsWith('/behaviors/finalizers.held.html') && document.readyState === 'complete'`)
	g.Expect(p.text(`document.querySelector('main').innerText`)).To(And(ContainSubstring("it is gone"), ContainSubstring("distro-0")))
	g.Expect(p.number(`[...document.querySelectorAll('.timeline')].filter((scrolls) => scrolls.tabIndex !== 0).length`)).To(BeZero(),
		"what scrolls is reached with the Tab key")
}

// siteOpensWithManyClaims logs how long the browser needs for 200 claims.
func siteOpensWithManyClaims(t *testing.T, _ string) {
	p := openSite(t, claimSite(t, 20, 10), "index.html", desktop)
	NewWithT(t).Expect(p.number(`document.querySelectorAll('main a[href^="claims/"]').length`)).To(Equal(200.0))
	t.Logf("200 claims: open after %.0f ms", p.number(`performance.getEntriesByType('navigation')[0].loadEventEnd`))
}
