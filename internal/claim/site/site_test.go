package site_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/claim/claimtest"
	"github.com/deletion-conformance/deletion-conformance/internal/claim/site"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/visible"
)

// addTo adds claims to a site.
func addTo(t *testing.T, pages *site.Site, claims ...v1alpha1.ConformanceReport) {
	t.Helper()
	g := NewWithT(t)
	for _, of := range claims {
		file, err := os.CreateTemp(t.TempDir(), "claim")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(errors.Join(claim.Encode(file, of), file.Close())).To(Succeed())
		examined := claim.Examine(of, nil)
		g.Expect(examined.Problems).To(BeEmpty())
		g.Expect(examined.Current).To(BeFalse())
		g.Expect(pages.Add(file.Name(), of, examined)).To(Succeed())
	}
}

// written writes a site of claims, and returns its directory.
func written(t *testing.T, claims ...v1alpha1.ConformanceReport) string {
	t.Helper()
	pages, dir := site.New(), filepath.Join(t.TempDir(), "site")
	addTo(t, pages, claims...)
	NewWithT(t).Expect(pages.Write(dir)).To(Succeed())
	return dir
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

func TestTheSiteShowsVersionsAndChanges(t *testing.T) {
	g := NewWithT(t)
	dir := written(t,
		claimtest.Of(t, "distro", "1.10.0"),
		claimtest.Of(t, "distro", "1.9.0", claimtest.Fails("finalizers.held", "it is gone"), claimtest.Fails("watch.recreation", "seen as MODIFIED")),
		claimtest.Of(t, "distro", "1.8.0", claimtest.Fails("watch.recreation", "seen as MODIFIED")),
		claimtest.Of(t, "another", "2026.1", claimtest.Fails("finalizers.held", "it was deleted")),
	)
	index := read(t, dir, "index.html")
	g.Expect(index).To(ContainSubstring("4 verified claims about 15 behaviors"))
	g.Expect(strings.Index(index, "1.10.0")).To(BeNumerically("<", strings.Index(index, "1.9.0")), "the newest version is first")
	g.Expect(index).To(ContainSubstring("1.10.0 another catalogue v1.37.2 passed 6 of 6, 1 skipped passed 4 of 4 not claimed passed 1 of 1 passed 1 of 1 not claimed"))
	g.Expect(index).To(ContainSubstring("1.9.0 another catalogue v1.37.2 failed 4 of 6, 1 skipped"))

	held := read(t, dir, "behaviors/finalizers.held.html")
	g.Expect(held).To(ContainSubstring("another 2026.1 v1.37.2 failed 2026.1"))
	g.Expect(held).To(ContainSubstring("distro 1.10.0 v1.37.2 passed 1.10.0"))
	g.Expect(held).To(ContainSubstring("failed distro 1.9.0 it is gone"))
	g.Expect(held).To(ContainSubstring("DELETE /api/v1/namespaces/dcsvkffmjw-7/configmaps/held-hj7ftc"), "the timeline of the failure")
	g.Expect(read(t, dir, "behaviors/watch.resumed-sees-deletion.html")).To(ContainSubstring("distro 1.10.0 v1.37.2 passed 1.8.0"), "passes since")

	changes := read(t, dir, "changes.html")
	g.Expect(changes).To(ContainSubstring("distro : 1.9.0 (Kubernetes v1.37.2) to 1.10.0 (Kubernetes v1.37.2)"))
	g.Expect(changes).To(ContainSubstring("finalizers.held failed passed watch.recreation failed passed"))
	g.Expect(changes).To(ContainSubstring("finalizers.held passed failed"))
	g.Expect(read(t, dir, "behaviors.html")).To(ContainSubstring("core api 1 1 0 0"))
	g.Expect(read(t, dir, "latency.html")).To(ContainSubstring("another 2026.1 1 2.91 s"))

	badge, err := os.ReadFile(filepath.Join(dir, "badges", "distro-api.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(badge)).To(ContainSubstring(`<title>deletion api: passed</title>`), "the badge of the newest version")
	g.Expect(string(badge)).To(ContainSubstring(`<rect width="143" height="20" rx="3" fill="#3d424a"/>`))
	g.Expect(string(badge)).NotTo(ContainSubstring("%!"))

	copied, err := claim.Read(filepath.Join(dir, "claims", "distro-1.10.0-kubernetes-v1.37.2.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claim.Examine(copied, nil).Problems).To(BeEmpty())
}

func TestClaimsWithTheSameNameHaveTheirOwnPages(t *testing.T) {
	g := NewWithT(t)
	dir := written(t, claimtest.Of(t, "a b", "1"), claimtest.Of(t, "a b", "1"), claimtest.Of(t, "A/B", "1", claimtest.Fails("finalizers.held", "x")))
	files, err := filepath.Glob(filepath.Join(dir, "claims", "*.html"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(3))
	badges, err := filepath.Glob(filepath.Join(dir, "badges", "a-b*-api.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(badges).To(ContainElements(filepath.Join(dir, "badges", "a-b-api.svg"), filepath.Join(dir, "badges", "a-b-2-api.svg")))
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

func TestPagesAreAccessibleAndContainTextOfOthersAsText(t *testing.T) {
	g := NewWithT(t)
	pages, dir := site.New(), t.TempDir()
	for i, text := range reporttest.Hostile {
		shown := visible.Text(text)
		if strings.TrimSpace(shown) == "" || strings.ContainsAny(shown, "\r\n") {
			shown = "nothing"
		}
		addTo(t, pages, claimtest.Of(t, shown, fmt.Sprint(i), claimtest.Fails("finalizers.held", "failed: "+text)))
	}
	g.Expect(pages.Write(dir)).To(Succeed())
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

func TestABehaviorWhoseIdIsAPathIsRefused(t *testing.T) {
	g := NewWithT(t)
	moved := claimtest.Of(t, "distro", "1.0.0", func(result *v1alpha1.Result) {
		if result.ID == "finalizers.held" {
			result.ID = "../../escaped"
		}
	})
	g.Expect(site.New().Add("", moved, claim.Examine(moved, nil))).To(MatchError(`behavior id "../../escaped" cannot be the name of a page`))
}

func TestTwoHundredClaims(t *testing.T) {
	g := NewWithT(t)
	passed, failed := claimtest.Of(t, "project", "1"), claimtest.Of(t, "project", "1", claimtest.Fails("finalizers.held", "it is gone"))
	examined := map[bool]claim.Examined{false: claim.Examine(passed, nil), true: claim.Examine(failed, nil)}
	file := filepath.Join(t.TempDir(), "claim.json")
	content, err := json.Marshal(passed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	pages, dir := site.New(), t.TempDir()
	start := time.Now()
	for i := range 200 {
		fails := i%7 == 0
		of := passed
		if fails {
			of = failed
		}
		of.Implementation.Project, of.Implementation.Version = fmt.Sprintf("project-%d", i/10), fmt.Sprintf("1.%d.0", i%10)
		g.Expect(pages.Add(file, of, examined[fails])).To(Succeed())
	}
	g.Expect(pages.Write(dir)).To(Succeed())
	t.Logf("200 claims took %s", time.Since(start)) // no limit: other tests may use the processors
	index, err := os.Stat(filepath.Join(dir, "index.html"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(index.Size()).To(BeNumerically("<", 400_000), "a browser opens it at once")
	files := pagesOf(t, dir)
	g.Expect(files).To(HaveLen(4 + 200 + 15))
	for _, file := range files {
		checkPage(t, file)
	}
}
