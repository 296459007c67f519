// Package junit writes a report as JUnit XML, for CI.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// JUnit has no standard, so this file keeps to what its readers share; docs/junit.md shows what each makes of it, and
// readers_test.go holds the document to the rules of each:
//
//   - Jenkins' junit plugin (hudson.tasks.junit.CaseResult and SuiteResult) takes name, classname and time of a
//     testcase, message and text of error, failure and skipped, the properties of suites and cases, and the suite's
//     timestamp. Package and class of its tree are classname cut at the last dot: here, the cluster and the suite.
//   - GitLab (lib/gitlab/ci/parsers/test/junit.rb) takes classname, name, file and time, and of failure, error or
//     skipped only the *text*: hence every reason stands in the message and in the text. Of two testcases with the
//     same classname and name it drops one: hence uniqueNames.
//   - dorny/test-reporter and Azure DevOps read testsuites/testsuite/testcase and nothing deeper: hence no testsuite
//     within another. The first lists testcases below a heading where their classname is not the testsuite's name.
//   - The order and nesting of elements is that of junit-10.xsd (Jenkins' xunit plugin) with the additions of
//     github.com/testmoapp/junitxml that everybody writes: file, line and properties of a testcase, skipped of
//     testsuites. The properties come first in a testcase, then one of skipped, error and failure. junit-10.xsd itself
//     does not know these additions, so the xunit plugin (not the junit one) refuses the file.
//
// go-junit-report's types lack those additions; the types below add them, an outer field taking the place of the
// embedded one of the same XML name.
type testsuites struct {
	junit.Testsuites
	Suites []testsuite `xml:"testsuite"`
}

type testsuite struct {
	junit.Testsuite
	Testcases []testcase `xml:"testcase"`
}

type testcase struct {
	Properties *[]junit.Property `xml:"properties>property,omitempty"`
	junit.Testcase
	File string `xml:"file,attr,omitempty"`
	Line int    `xml:"line,attr,omitempty"`
}

const (
	// messageInAttribute is how many characters of a message stand in the attribute; the text has all of it.
	messageInAttribute = 300
	// preflight is the suite of the one testcase that says that a cluster could not be tested.
	preflight = "preflight"
)

// Write writes the report as JUnit XML: one testsuite a cluster and suite, one testcase a behavior. Filtered
// behaviors are skipped with their reason, deviations too unless the run is strict, so that CI stays green.
func Write(w io.Writer, r v1alpha1.Report) error {
	document := testsuites{Testsuites: junit.Testsuites{Name: "deletion conformance", Time: seconds(r.End.Sub(r.Start).Seconds())}}
	for _, cluster := range r.Clusters {
		if cluster.Problem != "" {
			document.add(problemSuite(r, cluster))
		}
		for _, suite := range suitesOf(cluster) {
			document.add(resultSuite(r, cluster, suite))
		}
	}
	content, err := xml.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("encode JUnit XML: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, content); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	return nil
}

// suitesOf are the suites that the cluster has results of, in the order of the results.
func suitesOf(cluster v1alpha1.Cluster) []string {
	var suites []string
	seen := map[string]bool{}
	for _, result := range cluster.Results {
		if suite := result.Suite(); !seen[suite] {
			seen[suite] = true
			suites = append(suites, suite)
		}
	}
	return suites
}

// add appends a suite and keeps the totals.
func (d *testsuites) add(suite testsuite) {
	suite.ID = len(d.Suites)
	d.Suites = append(d.Suites, suite)
	d.Tests += suite.Tests
	d.Errors += suite.Errors
	d.Failures += suite.Failures
	d.Skipped += suite.Skipped
}

// add appends a testcase and keeps the counts.
func (s *testsuite) add(c testcase) {
	s.Testcases = append(s.Testcases, c)
	s.Tests++
	switch {
	case c.Error != nil:
		s.Errors++
	case c.Failure != nil:
		s.Failures++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func newSuite(r v1alpha1.Report, cluster v1alpha1.Cluster, suite string) testsuite {
	s := testsuite{Testsuite: junit.Testsuite{Name: report.Visible(cluster.Name + "." + suite), Time: seconds(0)}}
	subject := v1alpha1.SubjectCluster
	if slices.ContainsFunc(cluster.Results, func(result v1alpha1.Result) bool { return result.Suite() == suite && result.IsKubectl() }) {
		subject = v1alpha1.SubjectKubectl
	}
	s.Properties = properties(
		junit.Property{Name: "subject", Value: subject},
		junit.Property{Name: "cluster", Value: cluster.Name},
		junit.Property{Name: "resource", Value: cluster.Resource},
		junit.Property{Name: "server-version", Value: cluster.ServerVersion},
		junit.Property{Name: "node-runtime", Value: cluster.NodeRuntime},
		junit.Property{Name: "kubectl-version", Value: cluster.KubectlVersion},
		junit.Property{Name: "preflight", Value: report.Findings(cluster)},
		junit.Property{Name: "warning", Value: cluster.Warning},
		junit.Property{Name: "left-behind", Value: cluster.LeftBehind},
		junit.Property{Name: "run", Value: r.RunID},
		junit.Property{Name: "runner", Value: r.Runner},
	)
	return s
}

// problemSuite makes a cluster that could not be tested visible also to viewers that only know testcases.
func problemSuite(r v1alpha1.Report, cluster v1alpha1.Cluster) testsuite {
	suite := newSuite(r, cluster, preflight)
	suite.SetTimestamp(r.Start.UTC())
	suite.add(testcase{Testcase: junit.Testcase{
		Name:      "the cluster can be tested",
		Classname: suite.Name,
		Time:      seconds(0),
		Error:     outcomeElement(v1alpha1.Result{Outcome: v1alpha1.Errored}, cluster.Problem),
	}})
	return suite
}

func resultSuite(r v1alpha1.Report, cluster v1alpha1.Cluster, name string) testsuite {
	suite := newSuite(r, cluster, name)
	results := slices.DeleteFunc(slices.Clone(cluster.Results), func(result v1alpha1.Result) bool { return result.Suite() != name })
	names := uniqueNames(results)
	var total float64
	for i, result := range results {
		suite.add(newTestcase(suite.Name, names[i], result, r.Strict))
		total += result.Seconds
	}
	suite.Time = seconds(total)
	suite.SetTimestamp(firstStart(results, r.Start).UTC())
	return suite
}

// firstStart is when the first of the results began, or the start of the run where none did.
func firstStart(results []v1alpha1.Result, run time.Time) time.Time {
	var first time.Time
	for _, result := range results {
		if !result.Start.IsZero() && (first.IsZero() || result.Start.Before(first)) {
			first = result.Start
		}
	}
	if first.IsZero() {
		return run
	}
	return first
}

// uniqueNames are the statements of the results, with the id behind those that are not the only one of their suite.
func uniqueNames(results []v1alpha1.Result) []string {
	count := map[string]int{}
	for _, result := range results {
		count[result.Statement]++
	}
	names := make([]string, len(results))
	for i, result := range results {
		names[i] = report.Visible(result.Statement)
		if count[result.Statement] > 1 || result.Statement == "" {
			names[i] = strings.TrimSpace(fmt.Sprintf("%s [%s]", names[i], report.Visible(result.ID)))
		}
	}
	return names
}

func newTestcase(classname, name string, result v1alpha1.Result, strict bool) testcase {
	c := testcase{
		Testcase: junit.Testcase{Name: name, Classname: classname, Time: seconds(result.Seconds)},
		File:     report.Visible(result.File),
		Line:     result.Line,
		Properties: properties(
			junit.Property{Name: "id", Value: result.ID},
			junit.Property{Name: "level", Value: string(result.Level)},
			junit.Property{Name: "needs", Value: report.Features(result.Features)},
			junit.Property{Name: "since", Value: result.Since},
			junit.Property{Name: "outcome", Value: string(result.Outcome)},
		),
	}
	if tries := report.Tries(result); tries != "" { // readers that know reruns do not agree on elements for them
		c.SystemOut = &junit.Output{Data: withoutAttachments(report.Visible(tries))}
	}
	switch result.Outcome {
	case v1alpha1.Passed:
	case v1alpha1.Failed:
		c.Failure = outcomeElement(result, report.FailureMessage(result))
	case v1alpha1.Deviated:
		if strict {
			c.Failure = outcomeElement(result, report.FailureMessage(result))
		} else {
			c.Skipped = outcomeElement(result, deviates+report.FailureMessage(result))
		}
	case v1alpha1.Skipped, v1alpha1.Filtered:
		c.Skipped = outcomeElement(result, report.ReasonOf(result))
	case v1alpha1.Interrupted:
		// As Ginkgo's own reporter does it: what was cut off in the middle is an error, so that an interrupted run
		// never looks green; the crowd of those that had not begun is skipped, so that it does not bury the failures.
		if result.Start.IsZero() {
			c.Skipped = outcomeElement(result, report.ReasonOf(result))
		} else {
			c.Error = outcomeElement(result, report.ReasonOf(result))
		}
	default:
		c.Error = outcomeElement(result, report.ReasonOf(result))
	}
	return c
}

// attachment is how text of a system-out names a file for Jenkins' junit-attachments plugin, GitLab and Azure DevOps, in
// any case of letters.
var attachment = regexp.MustCompile(`(?i)\[(\[ATTACHMENT)`)

// withoutAttachments takes the meaning from what a server said: its words must not make CI publish a file of the machine.
func withoutAttachments(text string) string {
	return attachment.ReplaceAllString(text, "[ $1")
}

// deviates opens the message of an observed behavior that failed.
const deviates = "deviates from what upstream is observed to do: "

// outcomeElement is a failure, error or skipped element: the message shortened for lists in the attribute, and whole in
// the text with the evidence behind it.
func outcomeElement(result v1alpha1.Result, message string) *junit.Result {
	text := strings.TrimSpace(report.Visible(message))
	if evidence := report.Evidence(result); evidence != "" {
		text += "\n\n" + report.Visible(evidence)
	}
	return &junit.Result{Message: report.OneLine(message, messageInAttribute), Type: report.Visible(string(result.Outcome)), Data: text}
}

// properties makes a property list; empty values are left out.
func properties(list ...junit.Property) *[]junit.Property {
	var shown []junit.Property
	for _, property := range list {
		if property.Value != "" {
			shown = append(shown, junit.Property{Name: property.Name, Value: report.Visible(property.Value)})
		}
	}
	if shown == nil {
		return nil
	}
	return &shown
}

// seconds is a duration as JUnit has it: seconds with a dot and three decimals, never negative.
func seconds(duration float64) string {
	return fmt.Sprintf("%.3f", max(duration, 0))
}
