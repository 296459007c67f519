// Package ctrf writes a report in the Common Test Report Format (https://ctrf.io), for tools that read one format of all test frameworks.
package ctrf

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

const (
	// specVersion is the version of CTRF.
	specVersion = "0.0.0"
	name        = "deletion-conformance"
	// preflight is the suite with the only test of a cluster that could not be tested.
	preflight = "preflight"
)

// status is the status of a test in CTRF.
type status string

const (
	passed  status = "passed"
	failed  status = "failed"
	skipped status = "skipped"
	// pending is a test that was selected and did not run.
	pending status = "pending"
	// other is a test whose result counts neither as passed nor as failed.
	other status = "other"
)

// Write writes the report as a CTRF document: one test for each behavior on each cluster. Behaviors that were not selected are left out and
// counted in the summary. Known failures and, unless the run is strict, deviations have the status other, so that CI stays green.
func Write(w io.Writer, r v1alpha1.Report) error {
	r = visible.Value(r)
	verdict, _ := r.Verdict(v1alpha1.SubjectCluster)
	d := document{
		ReportFormat: "CTRF", SpecVersion: specVersion, RunID: r.RunID, Timestamp: r.End.UTC().Format(time.RFC3339Nano), GeneratedBy: name,
		Results: results{
			Tool: tool{Name: name, Version: r.Runner},
			Summary: summary{
				Start: r.Start.UnixMilli(), Stop: r.End.UnixMilli(), Duration: max(r.End.Sub(r.Start).Milliseconds(), 0),
				Extra: summaryExtra{NotSelected: r.Counts[v1alpha1.Filtered], Verdict: verdict.String()},
			},
			Tests:       []test{},
			Environment: environmentOf(r, verdict),
		},
	}
	suites := map[[2]string]bool{}
	for _, tested := range r.Clusters {
		for _, t := range testsOf(tested, r.Strict) {
			d.Results.add(t)
			suites[[2]string(t.Suite)] = true
		}
	}
	d.Results.Summary.Suites = len(suites)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("write CTRF: %w", err)
	}
	return nil
}

func environmentOf(r v1alpha1.Report, verdict v1alpha1.Verdict) environment {
	e := environment{
		ReportName: "Deletion conformance", ShardID: r.Shard, Healthy: verdict.Conclusion.Passes(), Extra: environmentExtra{Clusters: []cluster{}},
	}
	for _, tested := range r.Clusters {
		e.Extra.Clusters = append(e.Extra.Clusters, cluster{
			Name: tested.Name, Resource: tested.Resource, ServerVersion: tested.ServerVersion,
			NodeRuntime: tested.NodeRuntime, KubectlVersion: tested.KubectlVersion,
			Preflight: report.Findings(tested), Warning: tested.Warning, LeftBehind: tested.LeftBehind, Kept: tested.Kept,
		})
	}
	if len(e.Extra.Clusters) == 1 {
		e.AppName, e.AppVersion = e.Extra.Clusters[0].Name, e.Extra.Clusters[0].ServerVersion
	}
	return e
}

// add appends a test and counts it.
func (r *results) add(t test) {
	r.Tests = append(r.Tests, t)
	r.Summary.Tests++
	switch t.Status {
	case passed:
		r.Summary.Passed++
	case failed:
		r.Summary.Failed++
	case skipped:
		r.Summary.Skipped++
	case pending:
		r.Summary.Pending++
	case other:
		r.Summary.Other++
	}
}

// testsOf returns the tests of a cluster. A cluster that could not be tested has a failed test for that.
func testsOf(tested v1alpha1.Cluster, strict bool) []test {
	var tests []test
	on := tested.Name
	if tested.Problem != "" {
		tests = append(tests, test{
			TestID: preflight + "@" + on, Name: "the cluster can be tested", Status: failed, RawStatus: string(v1alpha1.Errored), Type: "e2e",
			Suite: []string{on, preflight}, Message: tested.Problem, Labels: labels(map[string]string{"cluster": tested.Name}),
		})
	}
	for _, result := range tested.Results {
		if report.WasSelected(result) {
			tests = append(tests, testOf(tested, result, strict))
		}
	}
	return tests
}

func testOf(on v1alpha1.Cluster, result v1alpha1.Result, strict bool) test {
	t := test{
		TestID:    result.ID + "@" + on.Name,
		Name:      result.ID + ": " + result.Statement,
		Status:    statuses[report.StatusOf(result, strict)],
		RawStatus: string(result.Outcome),
		Suite:     []string{on.Name, result.Suite()},
		Message:   report.Message(result),
		Type:      "e2e",
		FilePath:  result.File,
		Line:      result.Line,
		Labels: labels(map[string]string{
			"id": result.ID, "level": string(result.Level), "since": result.Since, "cause": report.CauseOf(result),
			"cluster": on.Name, "resource": on.Resource, "server-version": on.ServerVersion,
		}),
		Retries: len(result.Tries),
	}
	t.Start, t.Stop, t.Duration = times(result.Start, result.Seconds)
	if len(result.Features) > 0 {
		t.Labels["features"] = result.Features
	}
	if result.Outcome != v1alpha1.Passed {
		t.Trace = report.FailureDetails(result)
	}
	for i, try := range result.Tries {
		before := attempt{Attempt: i + 1, Status: other, Message: try.Reason} // no result: a failure is never retried
		before.Start, before.Stop, before.Duration = times(try.Start, try.Seconds)
		t.RetryAttempts = append(t.RetryAttempts, before)
	}
	return t
}

// statuses are the statuses in CTRF. It knows no errors, and an incomplete run must not look green.
var statuses = map[report.Status]status{
	report.Pass: passed, report.Fail: failed, report.Error: failed, report.Tolerated: other, report.Skip: skipped, report.Pending: pending,
}

// times returns a start and an end in milliseconds since 1970, which are 0 for what did not start, and a duration in milliseconds.
func times(at time.Time, seconds float64) (start, stop, duration int64) {
	duration = max(int64(seconds*1000), 0) //nolint:mnd // milliseconds
	if at.IsZero() {
		return 0, 0, duration
	}
	return at.UnixMilli(), at.UnixMilli() + duration, duration
}

// labels returns labels without empty ones.
func labels(named map[string]string) map[string]any {
	labels := map[string]any{}
	for name, value := range named {
		if value != "" {
			labels[name] = value
		}
	}
	return labels
}
