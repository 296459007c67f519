package junit_test

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// element is a generic XML element.
type element struct {
	XMLName    xml.Name
	Attributes []xml.Attr `xml:",any,attr"`
	Text       string     `xml:",chardata"`
	Children   []element  `xml:",any"`
}

func (e element) attribute(name string) string {
	for _, attribute := range e.Attributes {
		if attribute.Name.Local == name {
			return attribute.Value
		}
	}
	return ""
}

func (e element) named(name string) []element {
	var children []element
	for _, child := range e.Children {
		if child.XMLName.Local == name {
			children = append(children, child)
		}
	}
	return children
}

// first returns the first child with one of these names, in the order of the names.
func (e element) first(names ...string) (element, bool) {
	for _, name := range names {
		if children := e.named(name); len(children) > 0 {
			return children[0], true
		}
	}
	return element{}, false
}

// row is how a reader shows a testcase: its location and outcome, in a list and when it is opened.
type row struct {
	Group, Name, Outcome, Message, Details, Place, Seconds string
	// Key is its identity for the reader: of two with the same key one is lost or confused with the other.
	Key string
}

// readers implement the rules by which common programs read a junit.xml.
var readers = map[string]func(root element) []row{
	"Jenkins":                      jenkins,
	"GitLab":                       gitLab,
	"dorny/test-reporter":          testReporter,
	"mikepenz/action-junit-report": actionJUnitReport,
	"Azure DevOps":                 azureDevOps,
}

// testcases calls read for each testcase, with its testsuite; nested includes testsuites in others.
func testcases(root element, nested bool, read func(suite, testcase element) row) []row {
	var rows []row
	for _, suite := range root.named("testsuite") {
		for _, testcase := range suite.named("testcase") {
			rows = append(rows, read(suite, testcase))
		}
		if nested {
			rows = append(rows, testcases(suite, nested, read)...)
		}
	}
	return rows
}

// jenkins reads as the junit plugin does. The package is the classname up to its last dot, the class what follows; an error
// comes before a failure; the message of a skip is its attribute, or its text where there is none.
// Source: github.com/jenkinsci/junit-plugin, hudson/tasks/junit/SuiteResult.java (parseSuite), CaseResult.java (getError,
// getErrorMessage, getSkippedMessage, getPackageName, getSimpleName), at c64aedde7777.
func jenkins(root element) []row {
	return testcases(root, true, func(_, testcase element) row {
		class := testcase.attribute("classname")
		dot := strings.LastIndex(class, ".")
		r := row{
			Group: class[:max(dot, 0)] + " › " + class[dot+1:], Name: testcase.attribute("name"), Outcome: "passed",
			Seconds: testcase.attribute("time"), Key: class + "." + testcase.attribute("name"),
		}
		if skipped, ok := testcase.first("skipped"); ok {
			r.Outcome, r.Message = "skipped", skipped.attribute("message")
		}
		if trouble, ok := testcase.first("error", "failure"); ok {
			r.Outcome, r.Message, r.Details = "failed", trouble.attribute("message"), trouble.Text
		}
		return r
	})
}

// gitLab reads as GitLab does. The classname is shown as the suite; failure comes before error and skipped, and of each only
// the text is read: an element with attributes and no text is shown as these attributes in Ruby's notation. Of two with the same
// names of testsuite, class and test the later is dropped.
// Source: gitlab.com/gitlab-org/gitlab, lib/gitlab/ci/parsers/test/junit.rb and lib/gitlab/ci/reports/test_case.rb;
// doc/ci/testing/unit_test_reports.md.
func gitLab(root element) []row {
	return testcases(root, true, func(suite, testcase element) row {
		class, name := testcase.attribute("classname"), testcase.attribute("name")
		r := row{
			Group: class, Name: name, Outcome: "success", Place: testcase.attribute("file"), Seconds: testcase.attribute("time"),
			Key: suite.attribute("name") + "_" + class + "_" + name,
		}
		if ended, ok := testcase.first("failure", "error", "skipped"); ok {
			r.Outcome, r.Details = strings.Replace(ended.XMLName.Local, "failure", "failed", 1), ended.Text
		}
		return r
	})
}

// testReporter reads as dorny/test-reporter's java-junit does, which knows testsuites below the root only. It groups by the
// classname where that is not the testsuite's name, and puts the type before the message.
// Source: github.com/dorny/test-reporter, src/parsers/java-junit/java-junit-parser.ts, src/report/get-report.ts, at 29672c52a822.
func testReporter(root element) []row {
	return testcases(root, false, func(suite, testcase element) row {
		group := suite.attribute("name")
		if class := testcase.attribute("classname"); class != group {
			group += " ► " + class
		}
		r := row{Group: group, Name: testcase.attribute("name"), Outcome: "success", Seconds: testcase.attribute("time")}
		r.Key = r.Group + " ► " + r.Name
		if trouble, ok := testcase.first("failure", "error"); ok {
			r.Outcome, r.Details = "failed", trouble.Text
			r.Message = trouble.attribute("type") + ": " + trouble.attribute("message")
		} else if _, ok := testcase.first("skipped"); ok {
			r.Outcome = "skipped"
		}
		return r
	})
}

// actionJUnitReport reads as mikepenz/action-junit-report does. What is skipped does not fail, even with a failure; annotations
// stand at file and line; name, classname and file are the key when it looks for retries.
// Source: github.com/mikepenz/action-junit-report, src/testParser.ts, at 305cd1f47a0f.
func actionJUnitReport(root element) []row {
	return testcases(root, true, func(suite, testcase element) row {
		r := row{Group: suite.attribute("name"), Name: testcase.attribute("name"), Outcome: "success", Seconds: testcase.attribute("time")}
		r.Key = r.Group + "|" + r.Name + "|" + testcase.attribute("classname") + "|" + testcase.attribute("file")
		if file := testcase.attribute("file"); file != "" {
			r.Place = file + ":" + testcase.attribute("line")
		}
		if trouble, ok := testcase.first("failure", "error"); ok {
			r.Outcome, r.Message, r.Details = "failure", trouble.attribute("message"), strings.TrimSpace(trouble.Text)
		}
		if _, ok := testcase.first("skipped"); ok {
			r.Outcome = "skipped"
		}
		return r
	})
}

// azureDevOps reads by the mapping that the task PublishTestResults@2 documents: testsuites/testsuite/testcase, the
// classname as the test's file, the message of failure, error or skipped, the text of failure or error as stack trace.
// Source: learn.microsoft.com/azure/devops/pipelines/tasks/reference/publish-test-results-v2, "Result formats mapping",
// JUnit.
func azureDevOps(root element) []row {
	return testcases(root, false, func(_, testcase element) row {
		r := row{Group: testcase.attribute("classname"), Name: testcase.attribute("name"), Outcome: "Passed", Seconds: testcase.attribute("time")}
		r.Key = r.Group + "." + r.Name
		if skipped, ok := testcase.first("skipped"); ok {
			r.Outcome, r.Message = "Not Executed", skipped.attribute("message")
		}
		if trouble, ok := testcase.first("failure", "error"); ok {
			r.Outcome, r.Message, r.Details = "Failed", trouble.attribute("message"), trouble.Text
		}
		return r
	})
}

func TestReaders(t *testing.T) {
	const failure = "Expected the owner to be deleted last <string>: DELETED owner to come after <string>: DELETED child"
	const place = "suites/cascade/foreground.go:42"
	for reader, want := range map[string][]row{
		"Jenkins": {
			{Group: "kind-a › cascade", Name: "cascade.background.owner-removed-first: lets the owner go first", Outcome: "passed", Seconds: "1.500"},
			{Group: "kind-a › cascade", Name: "cascade.foreground.blocking-dependents-first: outlives every blocking dependent", Outcome: "failed", Message: failure, Details: "Expected the owner", Seconds: "1.500"},
			{Group: "kind-a › cascade", Name: "cascade.orphan.one-level: leaves grandchildren their owner", Outcome: "failed", Message: "connection refused", Details: "connection refused", Seconds: "1.500"},
			{Group: "kind-a › graceful", Name: "graceful.node.grace-zero: is refused", Outcome: "skipped", Message: "no node is ready", Seconds: "0.000"},
			{Group: "arn:aws:eks:eu-central-1:123:cluster/prod › cascade", Name: "cascade.background.owner-removed-first: lets the owner go first", Outcome: "passed", Seconds: "1.500"},
		},
		"GitLab": {
			{Group: "kind-a.cascade", Name: "cascade.background.owner-removed-first: lets the owner go first", Outcome: "success", Place: "suites/cascade/foreground.go", Seconds: "1.500"},
			{Group: "kind-a.cascade", Name: "cascade.foreground.blocking-dependents-first: outlives every blocking dependent", Outcome: "failed", Details: "Expected the owner", Place: "suites/cascade/foreground.go", Seconds: "1.500"},
			{Group: "kind-a.cascade", Name: "cascade.orphan.one-level: leaves grandchildren their owner", Outcome: "error", Details: "connection refused", Place: "suites/cascade/foreground.go", Seconds: "1.500"},
			{Group: "kind-a.graceful", Name: "graceful.node.grace-zero: is refused", Outcome: "skipped", Details: "no node is ready", Place: "suites/cascade/foreground.go", Seconds: "0.000"},
			{Group: "gone.preflight", Name: "the cluster can be tested", Outcome: "error", Details: "dial tcp", Seconds: "0.000"},
		},
		"dorny/test-reporter": {
			{Group: "kind-a.cascade", Name: "cascade.foreground.blocking-dependents-first: outlives every blocking dependent", Outcome: "failed", Message: "failed: " + failure, Details: "Expected the owner", Seconds: "1.500"},
			{Group: "kind-a.cascade", Name: "cascade.orphan.one-level: leaves grandchildren their owner", Outcome: "failed", Message: "errored: connection refused", Details: "connection refused", Seconds: "1.500"},
			{Group: "kind-a.graceful", Name: "graceful.node.grace-zero: is refused", Outcome: "skipped", Seconds: "0.000"},
		},
		"mikepenz/action-junit-report": {
			{Group: "kind-a.cascade", Name: "cascade.foreground.blocking-dependents-first: outlives every blocking dependent", Outcome: "failure", Message: failure, Details: "Expected the owner", Place: place, Seconds: "1.500"},
			{Group: "kind-a.cascade", Name: "cascade.foreground.repeated-with-finalizer: leaves no foregroundDeletion behind", Outcome: "skipped", Place: place, Seconds: "1.500"},
			{Group: "gone.preflight", Name: "the cluster can be tested", Outcome: "failure", Message: "dial tcp 10.0.0.1:6443: connect: connection refused; is the kubeconfig current?", Details: "dial tcp", Seconds: "0.000"},
		},
		"Azure DevOps": {
			{Group: "kind-a.cascade", Name: "cascade.foreground.blocking-dependents-first: outlives every blocking dependent", Outcome: "Failed", Message: failure, Details: "Expected the owner", Seconds: "1.500"},
			{Group: "kind-a.cascade", Name: "cascade.foreground.repeated-with-finalizer: leaves no foregroundDeletion behind", Outcome: "Not Executed", Message: "deviates where nothing is promised: " + failure, Seconds: "1.500"},
			{Group: "kind-a.graceful", Name: "graceful.node.grace-zero: is refused", Outcome: "Not Executed", Message: "no node is ready", Seconds: "0.000"},
		},
	} {
		t.Run(reader, func(t *testing.T) {
			shown := readers[reader](decodeElements(t, junitOf(t, reporttest.Sample())))
			for _, row := range want {
				NewWithT(t).Expect(shown).To(ContainElement(looksLike(row)))
			}
		})
	}
}

// looksLike matches a row whose details begin like those of want; another test checks its identity.
func looksLike(want row) OmegaMatcher {
	return WithTransform(func(r row) row {
		r.Key = ""
		if want.Details != "" && strings.HasPrefix(r.Details, want.Details) {
			r.Details = want.Details
		}
		return r
	}, Equal(want))
}

// needNoReason are the outcomes for which a reader shows no reason: passed ones, and skipped ones for two readers that only count them.
var needNoReason = map[string][]string{
	"Jenkins":                      {"passed"},
	"GitLab":                       {"success"},
	"dorny/test-reporter":          {"success", "skipped"},
	"mikepenz/action-junit-report": {"success", "skipped"},
	"Azure DevOps":                 {"Passed"},
}

func TestReaders_EveryBehavior(t *testing.T) {
	r := reporttest.Sample()
	r.Clusters = append(r.Clusters, reporttest.Fleet(120, 5).Clusters...)
	document := decodeElements(t, junitOf(t, r))
	for reader, read := range readers {
		t.Run(reader, func(t *testing.T) {
			g := NewWithT(t)
			shown := read(document)
			g.Expect(shown).To(HaveLen(behaviors(r)))
			seen := map[string]bool{}
			for _, row := range shown {
				g.Expect(seen[row.Key]).To(BeFalse(), "a second %s", row.Key)
				seen[row.Key] = true
				seconds, err := strconv.ParseFloat(row.Seconds, 64)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(seconds).To(BeNumerically("<", time.Hour.Seconds()))
				if !slices.Contains(needNoReason[reader], row.Outcome) {
					g.Expect(row.Message+row.Details).NotTo(BeEmpty(), "%s does not say why it is %s", row.Key, row.Outcome)
				}
			}
		})
	}
}

// behaviors returns the number of testcases of a report: one for each selected behavior, and one for a cluster that could not be tested.
func behaviors(r v1alpha1.Report) int {
	count := 0
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if result.Outcome != v1alpha1.Filtered {
				count++
			}
		}
		if cluster.Problem != "" {
			count++
		}
	}
	return count
}

// readAsAttachment matches texts for which Jenkins' junit-attachments plugin (in system-out or system-err), GitLab (ATTACHMENT_TAG_REGEX in
// lib/gitlab/ci/parsers/test/junit.rb) and Azure DevOps ("Attachments support" of PublishTestResults@2) publish the named file.
var readAsAttachment = regexp.MustCompile(`(?i)\[\[ATTACHMENT\|.+?\]\]`)

func TestJUnit_NoAttachments(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{"[[ATTACHMENT|/etc/passwd]]", "a [[[attachment|id_rsa]]", "[[ATTACH\nMENT|x]] [[ATTACHMENT|y]]"} {
		document := decodeElements(t, junitOf(t, reporttest.WithText(text)))
		said := 0
		for _, suite := range document.named("testsuite") {
			for _, testcase := range suite.named("testcase") {
				for _, output := range testcase.named("system-out") {
					said++
					g.Expect(output.Text).To(ContainSubstring("try 1"))
					g.Expect(readAsAttachment.FindString(output.Text)).To(BeEmpty())
				}
			}
		}
		g.Expect(said).To(BeNumerically(">", 0))
	}
}

func decodeElements(t *testing.T, document string) element {
	t.Helper()
	var root element
	if err := xml.Unmarshal([]byte(document), &root); err != nil {
		t.Fatal(err)
	}
	return root
}
