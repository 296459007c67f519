package site_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/claim/claimtest"
	"github.com/deletion-conformance/deletion-conformance/internal/claim/site"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// written writes a site of claims, and returns its directory.
func written(t *testing.T, claims ...v1alpha1.ConformanceReport) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	pages := site.New(dir, claimtest.Catalog(t))
	claimtest.AddTo(t, pages.Add, claims...)
	NewWithT(t).Expect(pages.Write()).To(Succeed())
	return dir
}

// only returns the content of the only file that a pattern matches.
func only(t *testing.T, pattern ...string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pattern...))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).To(HaveLen(1))
	content, err := os.ReadFile(files[0])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// read returns the visible text of a page.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	var texts []string
	for node := range parsed(t, filepath.Join(dir, name)).Descendants() {
		if node.Type == html.TextNode {
			texts = append(texts, node.Data)
		}
	}
	return report.Joined(strings.Join(texts, " "))
}

func parsed(t *testing.T, file string) *html.Node {
	t.Helper()
	content, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	document, err := html.Parse(bytes.NewReader(content))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return document
}

func TestSite_Versions(t *testing.T) {
	g := NewWithT(t)
	dir := written(t,
		claimtest.Of(t, "distro", "1.10.0"),
		claimtest.Of(t, "distro", "1.9.0", claimtest.Fails("finalizers.held", "it is gone"), claimtest.Fails("watch.recreation", "seen as MODIFIED")),
		claimtest.Of(t, "distro", "1.8.0", claimtest.Fails("watch.recreation", "seen as MODIFIED")),
		claimtest.Of(t, "another", "2026.1", claimtest.Fails("finalizers.held", "it was deleted")),
	)
	index := read(t, dir, "index.html")
	g.Expect(index).To(ContainSubstring("4 claims about 16 behaviors. Each follows from the report that it contains. That the report is true is the word of its author."))
	g.Expect(strings.Index(index, "1.10.0")).To(BeNumerically("<", strings.Index(index, "1.9.0")), "the newest version is first")
	g.Expect(index).To(ContainSubstring("1.10.0 v1.37.2 passed 6 of 6, 1 skipped passed 4 of 4 not claimed passed 1 of 1 passed 1 of 1 not claimed"))
	g.Expect(index).To(ContainSubstring("1.9.0 v1.37.2 failed 4 of 6, 1 skipped"))

	held := read(t, dir, "behaviors/finalizers.held.html")
	g.Expect(held).To(ContainSubstring("another (Example) 2026.1 v1.37.2 failed 2026.1"))
	g.Expect(held).To(ContainSubstring("distro (Example) 1.10.0 v1.37.2 passed 1.10.0"))
	g.Expect(held).To(ContainSubstring("failed distro 1.9.0 (Example) it is gone"))
	g.Expect(held).To(ContainSubstring("DELETE /api/v1/namespaces/dcsvkffmjw-7/configmaps/held-hj7ftc"), "the timeline of the failure")
	g.Expect(read(t, dir, "behaviors/watch.resumed-sees-deletion.html")).To(ContainSubstring("distro (Example) 1.10.0 v1.37.2 passed 1.8.0"), "passes since")

	changes := read(t, dir, "changes.html")
	g.Expect(changes).To(ContainSubstring("distro (Example) : 1.9.0 (Kubernetes v1.37.2) to 1.10.0 (Kubernetes v1.37.2)"))
	g.Expect(changes).To(ContainSubstring("finalizers.held failed passed watch.recreation failed passed"))
	g.Expect(changes).To(ContainSubstring("finalizers.held passed failed"))
	g.Expect(read(t, dir, "behaviors.html")).To(ContainSubstring("core api 1 1 0 0"))
	g.Expect(read(t, dir, "latency.html")).To(ContainSubstring("another 2026.1 (Example) 1 2.91 s"))

	badge := only(t, dir, "badges", "example-distro-*-api.svg")
	g.Expect(badge).To(ContainSubstring(`<title>deletion api: passed</title>`), "the badge of the newest version")
	g.Expect(badge).To(ContainSubstring(`<rect width="143" height="20" rx="3" fill="#3d424a"/>`))
	g.Expect(badge).NotTo(ContainSubstring("%!"))

	copied, err := claim.Verify([]byte(only(t, dir, "claims", "distro-1.10.0-kubernetes-v1.37.2-*.json")), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied.Problems).To(BeEmpty())
}

func TestSite_OtherClaimsDoNotChangeASubject(t *testing.T) {
	g := NewWithT(t)
	fails := claimtest.Fails("finalizers.held", "it is gone")
	claimed := claimtest.Of(t, "distro", "1", fails)
	badge := only(t, written(t, claimed), "badges", "example-distro-*-api.svg")
	g.Expect(badge).To(ContainSubstring("deletion api: failed"))

	another := claimtest.Of(t, "distro", "99")
	another.Implementation.Organization = "Another"
	dir := written(t, claimtest.Of(t, "DISTRO", "99"), claimtest.Of(t, "dis/tro", "99"), another, claimtest.Of(t, "distro ", "99"), claimed, claimed)
	badges, err := filepath.Glob(filepath.Join(dir, "badges", "example-distro-*-api.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(badges).To(HaveLen(3), "DISTRO, and the one with a space, have names of their own")
	var shown []string
	for _, file := range badges {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		shown = append(shown, string(content))
	}
	g.Expect(shown).To(ContainElement(badge))
	g.Expect(read(t, dir, "index.html")).To(ContainSubstring("distro (Another) 99"))
	g.Expect(read(t, dir, "index.html")).To(ContainSubstring("5 claims"), "the same file twice is one claim")
}

func TestSite_OtherCatalogs(t *testing.T) {
	weakened := func(result *v1alpha1.Result) {
		if result.ID == "finalizers.held" {
			result.Statement, result.Promise, result.Source, result.Level = "It may stay.", "No promise.", "https://example.com", v1alpha1.Observed
			result.Outcome, result.Failure = v1alpha1.Deviated, &v1alpha1.Failure{Message: "it is gone"}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.Result)
		want   string
	}{
		"another level and statement": {weakened, "the report describes finalizers.held in another way"},
		"another id": {func(result *v1alpha1.Result) {
			if result.ID == "finalizers.held" {
				result.ID = "../../escaped"
			}
		}, "the report does not contain finalizers.held; this runner does not know ../../escaped"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := written(t, claimtest.Of(t, "distro", "1", test.change))
			g.Expect(only(t, dir, "badges", "example-distro-*-api.svg")).To(ContainSubstring("<title>deletion api: passed (catalog of 00191b7)</title>"))
			g.Expect(read(t, dir, "index.html")).To(ContainSubstring("1 catalog of 00191b7 v1.37.2"))
			held := read(t, dir, "behaviors/finalizers.held.html")
			g.Expect(held).To(ContainSubstring(statementOf(t, "finalizers.held")))
			g.Expect(held).NotTo(ContainSubstring("distro"), "it is about another behavior")
			g.Expect(read(t, dir, "behaviors/watch.recreation.html")).To(ContainSubstring("distro (Example) 1 catalog of 00191b7"))
			claims, err := filepath.Glob(filepath.Join(dir, "claims", "*.html"))
			g.Expect(err).NotTo(HaveOccurred())
			checkPage(t, claims[0])
			shown := read(t, dir, filepath.Join("claims", filepath.Base(claims[0])))
			g.Expect(shown).To(ContainSubstring("The catalog of this claim is not that of the site: " + test.want))
			for _, file := range pagesOf(t, dir) {
				name, err := filepath.Rel(dir, file)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(read(t, dir, name)).NotTo(Or(ContainSubstring("It may stay."), ContainSubstring("No promise.")), name)
			}
		})
	}
}

func statementOf(t *testing.T, id string) string {
	t.Helper()
	catalog := claimtest.Catalog(t)
	return catalog[slices.IndexFunc(catalog, func(behavior v1alpha1.Behavior) bool { return behavior.ID == id })].Statement
}

func TestSite_ModifiedRunner(t *testing.T) {
	g := NewWithT(t)
	dir := written(t, claimtest.Of(t, "distro", "1", func(*v1alpha1.Result) {}))
	g.Expect(only(t, dir, "badges", "example-distro-*-api.svg")).To(ContainSubstring("<title>deletion api: passed</title>"))
	dir = written(t, claimtest.ByRunner(t, "ec4b4c4-dirty"))
	g.Expect(only(t, dir, "badges", "example-distro-*-api.svg")).To(ContainSubstring("<title>deletion api: passed (modified runner ec4b4c4-dirty)</title>"))
	g.Expect(read(t, dir, "index.html")).To(ContainSubstring("modified runner ec4b4c4-dirty"))
}

// attribute returns an attribute of an element.
func attribute(node *html.Node, name string) (string, bool) {
	i := slices.IndexFunc(node.Attr, func(attribute html.Attribute) bool { return attribute.Key == name })
	if i < 0 {
		return "", false
	}
	return node.Attr[i].Val, true
}

// checkPage checks that a page is accessible, loads nothing from the network, and links to files that exist.
func checkPage(t *testing.T, file string) {
	t.Helper()
	document := parsed(t, file)
	count, _ := reporttest.Elements(document)
	for element, want := range map[string]int{"h1": 1, "main": 1, "nav": 1, "title": 1, "html lang": 1, "script": 0, "iframe": 0, "form": 0} {
		if count[element] != want {
			t.Errorf("%s has %d of %s, want %d", file, count[element], element, want)
		}
	}
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		if _, has := attribute(node, "scope"); node.Data == "th" && !has {
			t.Errorf("%s has a header of a table without scope", file)
		}
		if alt, _ := attribute(node, "alt"); node.Data == "img" && alt == "" {
			t.Errorf("%s has an image without a text", file)
		}
		if region, _ := attribute(node, "class"); region == "scroll" {
			if label, _ := attribute(node, "aria-label"); label == "" {
				t.Errorf("%s has a region that scrolls without a label", file)
			}
		}
		for _, name := range []string{"href", "src"} {
			target, has := attribute(node, name)
			if !has || strings.HasPrefix(target, "#") || node.Data == "a" && strings.HasPrefix(target, "https://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, target)
			}
		}
	}
}

// pagesOf returns the pages of a site.
func pagesOf(t *testing.T, dir string) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) == ".html" {
			pages = append(pages, file)
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return pages
}

func TestSite_HostileText(t *testing.T) {
	g := NewWithT(t)
	var claims []v1alpha1.ConformanceReport
	for i, text := range reporttest.Hostile {
		shown := visible.Text(text)
		if strings.TrimSpace(shown) == "" || strings.ContainsAny(shown, "\r\n") {
			shown = "nothing"
		}
		claims = append(claims, claimtest.Of(t, report.Shorten(shown, 80), fmt.Sprint(i), claimtest.Fails("finalizers.held", "failed: "+text)))
	}
	dir := written(t, claims...)
	for _, file := range pagesOf(t, dir) {
		checkPage(t, file)
	}
	badges, err := filepath.Glob(filepath.Join(dir, "badges", "*.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, badge := range badges {
		content, err := os.ReadFile(badge)
		g.Expect(err).NotTo(HaveOccurred())
		decoder := xml.NewDecoder(bytes.NewReader(content))
		for err == nil {
			_, err = decoder.Token()
		}
		g.Expect(err).To(MatchError(io.EOF), badge)
	}
}

func TestSite_ManyClaims(t *testing.T) {
	g := NewWithT(t)
	passed, failed := claimtest.Of(t, "project", "1"), claimtest.Of(t, "project", "1", claimtest.Fails("finalizers.held", "it is gone"))
	var claims []v1alpha1.ConformanceReport
	for i := range 200 {
		of := passed
		if i%7 == 0 {
			of = failed
		}
		of.Implementation.Project, of.Implementation.Version = fmt.Sprintf("project-%d", i/10), fmt.Sprintf("1.%d.0", i%10)
		claims = append(claims, of)
	}
	dir := written(t, claims...)
	index, err := os.Stat(filepath.Join(dir, "index.html"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(index.Size()).To(BeNumerically("<", 400_000), "a browser opens it at once")
	files := pagesOf(t, dir)
	g.Expect(files).To(HaveLen(4 + 200 + 16))
	for _, file := range files {
		checkPage(t, file)
	}
}
