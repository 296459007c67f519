package junit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	library "github.com/jstemmer/go-junit-report/v2/junit"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/junit"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

func junitOf(t *testing.T, r v1alpha1.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := junit.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func decodeJUnit(t *testing.T, document string) library.Testsuites {
	t.Helper()
	var suites library.Testsuites
	if err := xml.Unmarshal([]byte(document), &suites); err != nil {
		t.Fatalf("go-junit-report's own types do not read it: %v\n%s", err, document)
	}
	return suites
}

func suiteNamed(t *testing.T, suites library.Testsuites, name string) library.Testsuite {
	t.Helper()
	i := slices.IndexFunc(suites.Suites, func(s library.Testsuite) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no suite %q", name)
	}
	return suites.Suites[i]
}

func TestJUnit_Suites(t *testing.T) {
	g := NewWithT(t)
	suites := decodeJUnit(t, junitOf(t, reporttest.Sample()))
	var names []string
	for i, suite := range suites.Suites {
		names = append(names, suite.Name)
		g.Expect(suite.ID).To(Equal(i))
		for _, c := range suite.Testcases {
			g.Expect(c.Classname).To(Equal(suite.Name))
		}
	}
	g.Expect(names).To(Equal([]string{
		"kind-a.cascade", "kind-a.graceful", "arn:aws:eks:eu-central-1:123:cluster/prod.cascade", "gone.preflight",
	}))
	g.Expect([]int{suites.Tests, suites.Failures, suites.Errors, suites.Skipped}).To(Equal([]int{9, 1, 3, 3}))
	g.Expect(suites.Time).To(Equal("12.345"))

	cascade := suiteNamed(t, suites, "kind-a.cascade")
	g.Expect([]int{cascade.Tests, cascade.Failures, cascade.Errors, cascade.Skipped}).To(Equal([]int{4, 1, 1, 1}))
	g.Expect(cascade.Time).To(Equal("6.000"))
	g.Expect(cascade.Timestamp).To(Equal("2026-03-04T05:06:08Z"))
	g.Expect(*cascade.Properties).To(ContainElements(
		library.Property{Name: "server-version", Value: "v1.36.3"},
		library.Property{Name: "node-runtime", Value: "containerd://1.6.20"},
	))
}

func TestJUnit_Outcomes(t *testing.T) {
	g := NewWithT(t)
	document := junitOf(t, reporttest.Sample())
	suites := decodeJUnit(t, document)
	cascade := suiteNamed(t, suites, "kind-a.cascade").Testcases
	graceful := suiteNamed(t, suites, "kind-a.graceful").Testcases

	g.Expect(cascade[0]).To(Equal(library.Testcase{Name: "cascade.background.owner-removed-first: lets the owner go first", Classname: "kind-a.cascade", Time: "1.500"}))

	failure := cascade[1].Failure
	g.Expect(failure.Message).To(Equal("Expected the owner to be deleted last <string>: DELETED owner to come after <string>: DELETED child"))
	g.Expect(failure.Data).To(HavePrefix("Expected the owner to be deleted last\n    <string>: DELETED owner\n"))
	g.Expect(failure.Data).To(ContainSubstring("At suites/cascade/foreground.go:57"))
	g.Expect(failure.Data).To(ContainSubstring("ConfigMap child: finalizers deletion-conformance.github.io/hold"))
	g.Expect(failure.Data).To(ContainSubstring(`
   +0.000s  POST /api/v1/namespaces/dc-k7d2m-1/configmaps -> 201 in 3ms; sent {"metadata":{"name":"owner"}}
   +0.004s  ADDED ConfigMap dc-k7d2m-1/owner (uid 11111111-aaaa)
   +0.006s  ADDED ConfigMap dc-k7d2m-1/child (uid 22222222-bbbb): owned by ConfigMap owner (blocking)
   +0.010s  DELETE /api/v1/namespaces/dc-k7d2m-1/configmaps/owner -> 200 in 2ms; warning: mind the gap; sent {"propagationPolicy":"Foreground"}
   +0.014s  MODIFIED ConfigMap dc-k7d2m-1/owner (uid 11111111-aaaa): deletionTimestamp 2026-03-04T05:06:07Z, grace 0 s, finalizers [foregroundDeletion]
   +0.020s  PATCH /api/v1/namespaces/dc-k7d2m-1/configmaps/owner -> 422 in 1ms: metadata.finalizers: Forbidden
   +0.030s  GET /api/v1/namespaces/dc-k7d2m-1/configmaps/owner -> no response: EOF
   +0.040s  DELETED ConfigMap dc-k7d2m-1/child (uid 22222222-bbbb): owned by ConfigMap owner (blocking)
   +0.055s  DELETED ConfigMap dc-k7d2m-1/owner (uid 11111111-aaaa)`))

	g.Expect(cascade[2].Skipped.Message).To(HavePrefix("deviates where nothing is promised: Expected the owner"))
	g.Expect(cascade[3].Error.Message).To(Equal("connection refused"))
	g.Expect(graceful[0].Error.Message).To(Equal("stopped by SIGINT"))
	g.Expect(graceful[1].Skipped.Message).To(Equal("no node is ready"))
	g.Expect(graceful[1].Skipped.Data).To(Equal("no node is ready"), "GitLab only reads the text")
	g.Expect(graceful[2].Skipped.Message).To(Equal("the run was stopped before this behavior was tested"))
	g.Expect(suiteNamed(t, suites, "gone.preflight").Testcases[0].Error.Message).To(ContainSubstring("connection refused"))

	g.Expect(document).To(ContainSubstring(`file="suites/cascade/foreground.go" line="42"`))
	g.Expect(document).To(ContainSubstring(`<property name="id" value="cascade.foreground.blocking-dependents-first"></property>`))
	g.Expect(document).To(ContainSubstring(`<property name="level" value="core"></property>`))
	g.Expect(document).To(ContainSubstring(`<property name="features" value="gc"></property>`))
	g.Expect(strings.Count(document, `<property name="cause" value="`)).To(Equal(3), "of what failed, deviated or errored")
}

func TestJUnit_Strict(t *testing.T) {
	r := reporttest.Sample()
	r.Strict = true
	NewWithT(t).Expect(suiteNamed(t, decodeJUnit(t, junitOf(t, r)), "kind-a.cascade").Testcases[2].Failure).NotTo(BeNil())
}

func TestJUnit_NotSelected(t *testing.T) {
	g := NewWithT(t)
	document := junitOf(t, reporttest.Sample())
	g.Expect(document).NotTo(ContainSubstring("graceful.other-kinds"))
	suites := decodeJUnit(t, document)
	for suite, unselected := range map[string]string{
		"kind-a.cascade": "1", "kind-a.graceful": "1", "arn:aws:eks:eu-central-1:123:cluster/prod.cascade": "0", "gone.preflight": "0",
	} {
		g.Expect(*suiteNamed(t, suites, suite).Properties).To(ContainElement(library.Property{Name: "not-selected", Value: unselected}), suite)
	}
	nothing := reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", v1alpha1.Passed), reporttest.Unstarted("y.a", "a", v1alpha1.Filtered)))
	g.Expect(decodeJUnit(t, junitOf(t, nothing)).Suites).To(HaveLen(1), "no suite without testcases")
}

func TestJUnit_KnownFailures(t *testing.T) {
	g := NewWithT(t)
	known := reporttest.Because(reporttest.Failing(reporttest.Ran("x.a", "a", v1alpha1.Known)), "known failure: bug 1")
	outdated := reporttest.Because(reporttest.Ran("x.b", "b", v1alpha1.Outdated), "passed, but is listed")
	cases := decodeJUnit(t, junitOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", known, outdated)))).Suites[0].Testcases
	g.Expect(cases[0].Skipped.Message).To(Equal("known failure: bug 1"))
	g.Expect(cases[0].Skipped.Data).To(ContainSubstring("Expected the owner to be deleted last"))
	g.Expect(cases[1].Failure.Message).To(Equal("passed, but is listed"))
}

func TestJUnit_LongMessage(t *testing.T) {
	g := NewWithT(t)
	r := reporttest.Sample()
	long := strings.Repeat("äöü ", 5000) + "end"
	r.Clusters[0].Results[1].Failure.Message = long
	failure := suiteNamed(t, decodeJUnit(t, junitOf(t, r)), "kind-a.cascade").Testcases[1].Failure
	g.Expect(utf8.RuneCountInString(failure.Message)).To(BeNumerically("<=", 300))
	g.Expect(failure.Message).To(HaveSuffix("…"))
	g.Expect(failure.Data).To(HavePrefix(long))
}

func TestJUnit_Schema(t *testing.T) {
	checkJUnitShape(t, junitOf(t, reporttest.Sample()))
	checkJUnitShape(t, junitOf(t, report.Concluded(v1alpha1.Report{})))
}

func TestJUnit_HostileText(t *testing.T) {
	for _, text := range reporttest.Hostile {
		checkHostileJUnit(t, text)
	}
}

func FuzzJUnit(f *testing.F) {
	for _, text := range reporttest.Hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkHostileJUnit(t, text) })
}

// checkHostileJUnit writes a report with the text in every place that a cluster controls and reads it back: the document keeps its
// structure, and every place contains the whole text.
func checkHostileJUnit(t *testing.T, text string) {
	t.Helper()
	document := junitOf(t, reporttest.WithText(text))
	checkJUnitShape(t, document)
	suites := decodeJUnit(t, document)
	if len(suites.Suites) != 2 {
		t.Fatalf("%q made %d suites of 2", text, len(suites.Suites))
	}
	shown := visible.Text(text)
	if got := suites.Suites[0].Name; got != shown+".preflight" {
		t.Errorf("the suite of cluster %q is named %q", text, got)
	}
	for _, c := range suites.Suites[1].Testcases {
		for _, element := range []*library.Result{c.Failure, c.Error, c.Skipped} {
			if element != nil && !strings.Contains(element.Data, strings.TrimSpace(shown)) {
				t.Errorf("of %q only this is left: %q", text, element.Data)
			}
		}
	}
}

// junitShape maps elements to their permitted children, in order, and attributes, required ones with an exclamation mark: junit-10.xsd of
// Jenkins' xunit plugin, with file, line and properties of a testcase as described in github.com/testmoapp/junitxml.
var junitShape = map[string]struct{ children, attributes []string }{
	"testsuites": {[]string{"testsuite"}, []string{"name", "time", "tests", "failures", "errors", "skipped"}},
	"testsuite":  {[]string{"properties", "testcase"}, []string{"name!", "tests!", "failures!", "errors!", "id", "skipped", "time!", "timestamp!"}},
	"testcase":   {[]string{"properties", "skipped", "error", "failure", "system-out"}, []string{"name!", "classname!", "time!", "file", "line"}},
	"properties": {[]string{"property"}, nil},
	"property":   {nil, []string{"name!", "value!"}},
	"skipped":    {nil, []string{"message!", "type!"}},
	"error":      {nil, []string{"message!", "type!"}},
	"failure":    {nil, []string{"message!", "type!"}},
	"system-out": {},
}

// once are the elements that may occur only once in their parent.
var once = []string{"properties", "skipped", "error", "failure", "system-out"}

var junitTime = regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`)

// checkJUnitShape parses the document strictly and compares it with junitShape.
func checkJUnitShape(t *testing.T, document string) {
	t.Helper()
	if !utf8.ValidString(document) {
		t.Error("the document is no valid UTF-8")
	}
	if !strings.HasPrefix(document, `<?xml version="1.0" encoding="UTF-8"?>`) {
		t.Error("the document has no XML declaration")
	}
	type open struct {
		name     string
		children []string
	}
	stack := []open{{}}
	decoder := xml.NewDecoder(strings.NewReader(document))
	decoder.Strict = true
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, document)
		}
		switch token := token.(type) {
		case xml.StartElement:
			parent := &stack[len(stack)-1]
			parent.children = append(parent.children, token.Name.Local)
			checkJUnitAttributes(t, token)
			stack = append(stack, open{name: token.Name.Local})
		case xml.EndElement:
			closed := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			checkJUnitChildren(t, closed.name, closed.children)
		}
	}
	if len(stack[0].children) != 1 || stack[0].children[0] != "testsuites" {
		t.Errorf("the root is %v", stack[0].children)
	}
}

func checkJUnitAttributes(t *testing.T, element xml.StartElement) {
	t.Helper()
	allowed := junitShape[element.Name.Local].attributes
	seen := map[string]string{}
	for _, attribute := range element.Attr {
		name, value := attribute.Name.Local, attribute.Value
		seen[name] = value
		if !slices.Contains(allowed, name) && !slices.Contains(allowed, name+"!") {
			t.Errorf("%s has an attribute %q that readers do not know", element.Name.Local, name)
		}
		if name == "time" && !junitTime.MatchString(value) {
			t.Errorf("%s has time %q, not seconds with a dot", element.Name.Local, value)
		}
		if _, err := time.Parse("2006-01-02T15:04:05Z", value); name == "timestamp" && err != nil {
			t.Errorf("timestamp %q is not ISO 8601 in UTC", value)
		}
	}
	for _, attribute := range allowed {
		if name, required := strings.CutSuffix(attribute, "!"); required {
			if _, ok := seen[name]; !ok {
				t.Errorf("%s has no attribute %s", element.Name.Local, name)
			}
		}
	}
}

func checkJUnitChildren(t *testing.T, parent string, children []string) {
	t.Helper()
	allowed := junitShape[parent].children
	last := 0
	for i, child := range children {
		position := slices.Index(allowed, child)
		switch {
		case position < 0:
			t.Errorf("%s holds a %s", parent, child)
		case position < last:
			t.Errorf("%s holds %s too late: %v", parent, child, children)
		case i > 0 && children[i-1] == child && slices.Contains(once, child):
			t.Errorf("%s holds %s twice", parent, child)
		}
		last = max(last, position)
	}
}

func TestJUnit_SuiteNames(t *testing.T) {
	client := reporttest.Unstarted("kubectl.a", "a", v1alpha1.Passed)
	client.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
	var out bytes.Buffer
	NewWithT(t).Expect(junit.Write(&out, reporttest.Run("r", 0, reporttest.OnCluster("a", client, reporttest.Unstarted("x.a", "a", v1alpha1.Passed))))).To(Succeed())
	NewWithT(t).Expect(out.String()).To(And(
		MatchRegexp(`(?s)name="a\.kubectl".*?<property name="subject" value="kubectl">`), MatchRegexp(`(?s)name="a\.x".*?<property name="subject" value="cluster">`)))
}

func TestJUnit_TimelineWriters(t *testing.T) {
	failed := reporttest.Failing(reporttest.Ran("x.a", "a", v1alpha1.Failed))
	failed.Timeline.Events[0].Writers = []string{"operator"}
	failed.Timeline.Events[0].Released = []v1alpha1.Release{{Finalizer: "example.com/a", SetBy: []string{"runner"}}, {Finalizer: "example.com/b"}}
	NewWithT(t).Expect(junitOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", failed)))).To(ContainSubstring(
		"finalizer example.com/a removed (it was set by runner), finalizer example.com/b removed; written by operator"))
}
