package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/junit"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// viewer is an npm program that creates a page from a junit.xml.
type viewer struct {
	script    string
	arguments func(results, page string) []string
	// suites is a script that lists each suite on the page with its tests.
	suites string
	// tests is a selector of the tests on the page.
	tests string
}

// viewers are the tested viewers. junit-viewer copies messages into its page as markup and fails on a "<", so they get plain messages;
// package report tests hostile ones with parsers.
var viewers = map[string]viewer{
	"xunit-viewer": {
		script:    "bin/xunit-viewer.js",
		arguments: func(results, page string) []string { return []string{"--results", results, "--output", page} },
		suites: `[...document.querySelectorAll('.suite')].map((suite) => ({
			name: suite.querySelector('.card-header-title > span').textContent,
			tests: [...suite.querySelectorAll('.test > .card-header .card-header-title > span:not(.icon)')].map((name) => name.textContent),
		}))`,
		tests: `.test`,
	},
	"junit-viewer": {
		script:    "bin/junit-viewer",
		arguments: func(results, page string) []string { return []string{"--results=" + results, "--save=" + page} },
		suites: `[...document.querySelectorAll('.suite')].map((suite) => ({
			name: suite.querySelector('.suite__name').textContent.trim().split('\n')[0],
			tests: [...suite.querySelectorAll('.test__name')].map((name) => name.textContent.trim().split('\n')[0]),
		}))`,
		tests: `.test__name`,
	},
}

// suite is a suite as shown by a viewer.
type suite struct {
	Name  string   `json:"name"`
	Tests []string `json:"tests"`
}

func TestJUnit_Viewers(t *testing.T) {
	r := plain(reporttest.Sample(), reporttest.Fleet(120, 2))
	want := map[string][]string{"gone.preflight": {"the cluster can be tested"}}
	total := 1
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if !report.WasSelected(result) {
				continue
			}
			of := cluster.Name + "." + result.Suite()
			want[of] = append(want[of], result.ID+": "+result.Statement)
			total++
		}
	}
	for name, v := range viewers {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, desktop)
			p.before(everythingIsInView)
			p.goTo("file://" + v.page(t, name, r))
			p.is(fmt.Sprintf(`(%s).reduce((sum, suite) => sum + suite.tests.length, 0) >= %d`, v.suites, total))
			got := map[string][]string{}
			for _, s := range evaluate[[]suite](p, v.suites) {
				got[s.Name] = s.Tests
			}
			g := NewWithT(t)
			g.Expect(got).To(HaveLen(len(want)))
			for of, tests := range want {
				g.Expect(got[of]).To(ConsistOf(tests), of)
			}
			g.Expect(p.text(`document.body.textContent.replace(/\s+/g, ' ')`)).To(And(
				ContainSubstring("no node is ready"), ContainSubstring("expected the child to go first"),
				ContainSubstring("v1.36.3"), ContainSubstring("containerd://1.6.20")))
		})
	}
}

// everythingIsInView makes pages that draw visible parts, such as xunit-viewer, draw everything.
const everythingIsInView = `window.IntersectionObserver = class {
	constructor(seen) { this.seen = seen }
	observe(target) { setTimeout(() => this.seen([{ target, isIntersecting: true, intersectionRatio: 1 }], this)) }
	unobserve() {}
	disconnect() {}
}`

// plain merges the clusters of two reports, with failure messages without markup.
func plain(r, other v1alpha1.Report) v1alpha1.Report {
	r.Clusters = append(r.Clusters, other.Clusters...)
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if result.Failure != nil {
				result.Failure.Message = "expected the child to go first"
			}
		}
	}
	return r
}

// page returns the path of the viewer's page for a report's junit.xml.
func (v viewer) page(t *testing.T, name string, r v1alpha1.Report) string {
	t.Helper()
	dir := t.TempDir()
	results, page := filepath.Join(dir, "junit.xml"), filepath.Join(dir, "page.html")
	var content bytes.Buffer
	if err := junit.Write(&content, r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(results, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(npmPackage(t, name), v.script)
	if _, err := exec.LookPath("node"); err != nil {
		t.Skipf("not tested with %s: there is no node on PATH to run it", name)
	}
	out, err := exec.CommandContext(t.Context(), "node", append([]string{script}, v.arguments(results, page)...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return page
}
