package repository

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/report/junit"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

var (
	// filter matches the value of --label-filter: an expression in quotes without variables, or an id.
	filter = regexp.MustCompile(`--label-filter[ =](?:'([^'$]+)'|([a-z]+\.[\w.-]+))`)
	// setOperation matches an operation of a label filter on the values of a key, also in a sentence.
	setOperation = regexp.MustCompile(`\w+: *(?:isEmpty|(?:containsAny|containsAll|consistsOf|isSubsetOf) +(?:\{[^}]+\}|[\w-]+))`)
	// labels matches the description of what a label filter is about.
	labels = regexp.MustCompile(`Ginkgo label filter on ([\w, ]+)`)
	// code matches a name in a document.
	code = regexp.MustCompile("`([^`]+)`")
	// property matches the name of a property in junit.xml.
	property = regexp.MustCompile(`<property name="([^"]+)"`)
)

func TestDocuments_LabelFilters(t *testing.T) {
	count := 0
	for path, text := range files(t) {
		if filepath.Ext(path) == ".json" {
			continue // a report
		}
		text = strings.ReplaceAll(text, "finalizers.example", "finalizers.held") // the id of a behavior to add
		filters := setOperation.FindAllString(text, -1)
		for _, value := range filter.FindAllStringSubmatch(text, -1) {
			filters = append(filters, value[1]+value[2])
		}
		count += len(filters)
		for _, described := range names(labels, text) {
			NewWithT(t).Expect(described).To(Equal("ids, levels and features"), path)
		}
		for _, value := range filters {
			if _, err := plan.Make(plan.Selection{LabelFilter: value, Slow: true}); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	NewWithT(t).Expect(count).To(BeNumerically(">", 15))
}

func TestDocuments_JUnitProperties(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reports.md"))
	g.Expect(err).NotTo(HaveOccurred())
	_, text, found := strings.Cut(string(page), "Properties of a testcase are ")
	g.Expect(found).To(BeTrue())
	text, _, _ = strings.Cut(text, ". ")
	whole := reporttest.Sample()
	whole.Clusters[0].Results[0].Since = "1.30"
	var file bytes.Buffer
	g.Expect(junit.Write(&file, whole)).To(Succeed())
	_, testcases, _ := strings.Cut(file.String(), "<testcase")
	testcases, _, _ = strings.Cut(testcases, "<testsuite ")
	g.Expect(names(code, text)).To(Equal(names(property, testcases)))
}

// names returns the first submatches in a text, sorted.
func names(expression *regexp.Regexp, text string) []string {
	var found []string
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
