// Package junit writes a report as JUnit XML, for CI.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// JUnit has no standard, so this file keeps to what its readers share; docs/junit.md shows what each makes of it, and
// readers_test.go holds the document to the rules of each:
//
//   - Jenkins' junit plugin (hudson.tasks.junit.CaseResult and SuiteResult) takes name, classname and time of a
//     testcase, message and text of error, failure and skipped, the properties of suites and cases, and the suite's
//     timestamp. Package and class of its tree are classname cut at the last dot: here, the cluster and the suite.
//   - GitLab (lib/gitlab/ci/parsers/test/junit.rb) takes classname, name, file and time, and of failure, error or
//     skipped only the *text*: hence every reason stands in the message and in the text. Of two testcases with the
//     same classname and name it drops one: hence the id in the name.
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
	// messageInAttribute limits a message in the attribute, in characters; the text contains all of it.
	messageInAttribute = 300
	// preflight is the suite with the only testcase of a cluster that could not be tested.
	preflight = "preflight"
)

// Write writes the report as JUnit XML: one testsuite for each cluster and suite, one testcase for each behavior. Behaviors that were not selected are
// left out, and each testsuite of the cluster counts them in a property. Known failures and, unless the run is strict, deviations are
// skipped, so that CI stays green.
func Write(w io.Writer, r v1alpha1.Report) error {
	r = visible.Value(r)
	document := testsuites{Testsuites: junit.Testsuites{Name: "deletion conformance", Time: seconds(r.End.Sub(r.Start).Seconds())}}
	for _, cluster := range r.Clusters {
		unselected := cluster.Counts[v1alpha1.Filtered]
		cluster.Results = slices.DeleteFunc(slices.Clone(cluster.Results), func(result v1alpha1.Result) bool { return !report.WasSelected(result) })
		if cluster.Problem != "" {
			document.add(problemSuite(r, cluster, unselected))
		}
		for _, suite := range suitesOf(cluster) {
			document.add(resultSuite(r, cluster, suite, unselected))
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

// suitesOf returns the suites of the cluster's results, in their order.
func suitesOf(cluster v1alpha1.Cluster) []string {
	var suites []string
	for _, result := range cluster.Results {
		if !slices.Contains(suites, result.Suite()) {
			suites = append(suites, result.Suite())
		}
	}
	return suites
}

// add appends a suite and updates the totals.
func (d *testsuites) add(suite testsuite) {
	suite.ID = len(d.Suites)
	d.Suites = append(d.Suites, suite)
	d.Tests += suite.Tests
	d.Errors += suite.Errors
	d.Failures += suite.Failures
	d.Skipped += suite.Skipped
}

// add appends a testcase and updates the counts.
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

func newSuite(r v1alpha1.Report, cluster v1alpha1.Cluster, suite string, unselected int) testsuite {
	s := testsuite{Testsuite: junit.Testsuite{Name: cluster.Name + "." + suite, Time: seconds(0)}}
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
		junit.Property{Name: "kept", Value: cluster.Kept},
		junit.Property{Name: "not-selected", Value: strconv.Itoa(unselected)},
		junit.Property{Name: "run", Value: r.RunID},
		junit.Property{Name: "runner", Value: r.Runner},
	)
	return s
}

// problemSuite reports a cluster that could not be tested to viewers that only support testcases.
func problemSuite(r v1alpha1.Report, cluster v1alpha1.Cluster, unselected int) testsuite {
	suite := newSuite(r, cluster, preflight, unselected)
	suite.SetTimestamp(r.Start.UTC())
	suite.add(testcase{Testcase: junit.Testcase{
		Name:      "the cluster can be tested",
		Classname: suite.Name,
		Time:      seconds(0),
		Error:     outcomeElement(v1alpha1.Result{Outcome: v1alpha1.Errored}, cluster.Problem),
	}})
	return suite
}

func resultSuite(r v1alpha1.Report, cluster v1alpha1.Cluster, name string, unselected int) testsuite {
	suite := newSuite(r, cluster, name, unselected)
	results := slices.DeleteFunc(slices.Clone(cluster.Results), func(result v1alpha1.Result) bool { return result.Suite() != name })
	var total float64
	for _, result := range results {
		suite.add(newTestcase(suite.Name, result, r.Strict))
		total += result.Seconds
	}
	suite.Time = seconds(total)
	suite.SetTimestamp(firstStart(results, r.Start).UTC())
	return suite
}

// firstStart returns when the first of the results started, or the start of the run if none did.
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

func newTestcase(classname string, result v1alpha1.Result, strict bool) testcase {
	name := strings.TrimSuffix(result.ID+": "+result.Statement, ": ")
	c := testcase{
		Testcase: junit.Testcase{Name: name, Classname: classname, Time: seconds(result.Seconds)},
		File:     result.File,
		Line:     result.Line,
		Properties: properties(
			junit.Property{Name: "id", Value: result.ID},
			junit.Property{Name: "level", Value: string(result.Level)},
			junit.Property{Name: "features", Value: report.Features(result.Features)},
			junit.Property{Name: "since", Value: result.Since},
			junit.Property{Name: "outcome", Value: string(result.Outcome)},
			junit.Property{Name: "cause", Value: report.CauseOf(result)},
		),
	}
	if tries := report.Tries(result); tries != "" { // readers do not agree on elements for reruns
		c.SystemOut = &junit.Output{Data: withoutAttachments(tries)}
	}
	message := report.Message(result)
	switch report.StatusOf(result, strict) {
	case report.Pass:
	case report.Fail:
		c.Failure = outcomeElement(result, message)
	case report.Error:
		c.Error = outcomeElement(result, message)
	default:
		if result.Outcome == v1alpha1.Deviated {
			message = deviates + message
		}
		c.Skipped = outcomeElement(result, message)
	}
	return c
}

// attachment matches the syntax of attachments in system-out (Jenkins' junit-attachments plugin, GitLab and Azure DevOps), in any case.
var attachment = regexp.MustCompile(`(?i)\[(\[ATTACHMENT)`)

// withoutAttachments disables attachments in a server's texts, which must not make CI publish a file of the machine.
func withoutAttachments(text string) string {
	return attachment.ReplaceAllString(text, "[ $1")
}

// deviates is the prefix of the message of an observed behavior that failed.
const deviates = "deviates where nothing is promised: "

// outcomeElement returns a failure, error or skipped element: the shortened message in the attribute, and all of it with the evidence in
// the text.
func outcomeElement(result v1alpha1.Result, message string) *junit.Result {
	text := strings.TrimSpace(message)
	if evidence := report.FailureDetails(result); evidence != "" {
		text += "\n\n" + evidence
	}
	return &junit.Result{Message: report.OneLine(message, messageInAttribute), Type: string(result.Outcome), Data: text}
}

// properties returns a property list without empty values.
func properties(list ...junit.Property) *[]junit.Property {
	shown := slices.DeleteFunc(list, func(property junit.Property) bool { return property.Value == "" })
	if len(shown) == 0 {
		return nil
	}
	return &shown
}

// seconds formats a duration for JUnit: seconds with a dot and three decimals, never negative.
func seconds(duration float64) string {
	return fmt.Sprintf("%.3f", max(duration, 0))
}
