// Package reporttest creates reports for tests: a small one with every kind of content, one with hostile texts of a cluster, and a fleet of
// many behaviors on many clusters.
package reporttest

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// Start is the start of the runs of these reports.
var Start = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

//go:embed testdata
var testdata embed.FS

// decode reads a file of testdata.
func decode(name string, into any) {
	content, err := testdata.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		panic(err)
	}
}

// read reads a report of testdata. A behavior that ran without a timeline there has that of the previous one.
func read(name string) (r v1alpha1.Report) {
	decode(name, &r)
	for _, cluster := range r.Clusters {
		for i := range cluster.Results {
			if result := &cluster.Results[i]; i > 0 && !result.Start.IsZero() && len(result.Timeline.Requests) == 0 {
				result.Timeline = copied(cluster.Results[i-1].Timeline)
			}
		}
	}
	return r
}

// Sample returns a report with every outcome, on two clusters, and a third one that could not be tested.
func Sample() v1alpha1.Report { return report.Concluded(figures.Measure(read("sample.json"))) }

// Run returns a report of one cluster.
func Run(id string, start time.Duration, cluster v1alpha1.Cluster) v1alpha1.Report {
	return report.Concluded(v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: id, Runner: "v1",
		Start: Start.Add(start), End: Start.Add(start + time.Minute), Clusters: []v1alpha1.Cluster{cluster},
	})
}

// OnCluster returns a cluster with results.
func OnCluster(name string, results ...v1alpha1.Result) v1alpha1.Cluster {
	return v1alpha1.Cluster{Name: name, ServerVersion: "v1.36.3", Results: results}
}

// Unstarted returns a behavior that did not run; Ran one that took 1.5 seconds and recorded Timeline("owner", "child").
func Unstarted(id, statement string, outcome v1alpha1.Outcome) v1alpha1.Result {
	return v1alpha1.Result{
		Behavior: v1alpha1.Behavior{
			ID: id, Statement: statement, Level: v1alpha1.Core, Features: []v1alpha1.Feature{v1alpha1.GC},
			File: "suites/cascade/foreground.go", Line: 42,
		},
		Outcome: outcome,
	}
}

// Ran returns a behavior that took 1.5 seconds; see Unstarted.
func Ran(id, statement string, outcome v1alpha1.Outcome) v1alpha1.Result {
	r := Unstarted(id, statement, outcome)
	r.Start, r.Seconds, r.Timeline = Start.Add(time.Second), 1.5, Timeline("owner", "child")
	return r
}

// Because adds the reason for the outcome to a result.
func Because(r v1alpha1.Result, text string) v1alpha1.Result {
	r.Reason = text
	return r
}

// WithEarlierTry adds an earlier attempt to a result.
func WithEarlierTry(r v1alpha1.Result, reason string) v1alpha1.Result {
	r.Tries = append(r.Tries, v1alpha1.Try{Reason: reason, Start: Start, Seconds: 0.5})
	return r
}

// Failing adds a failure with all fields to a result.
func Failing(r v1alpha1.Result) v1alpha1.Result {
	r.Failure = read("sample.json").Clusters[0].Results[1].Failure
	return r
}

// Timeline returns a foreground delete of an owner with one dependent.
func Timeline(owner, child string) v1alpha1.Timeline {
	timeline := read("sample.json").Clusters[0].Results[0].Timeline
	names := map[string]string{"owner": owner, "child": child}
	for i := range timeline.Requests {
		request := &timeline.Requests[i]
		request.Object.Name = owner
		request.Path = strings.Replace(request.Path, "/owner", "/"+owner, 1)
		request.Body = strings.Replace(request.Body, `"owner"`, `"`+owner+`"`, 1)
	}
	for i := range timeline.Events {
		event := &timeline.Events[i]
		event.Name = names[event.Name]
		for j := range event.Owners {
			event.Owners[j].Name = owner
		}
	}
	return timeline
}

// copied returns a deep copy of a timeline.
func copied(timeline v1alpha1.Timeline) v1alpha1.Timeline {
	timeline.Requests, timeline.Events = slices.Clone(timeline.Requests), slices.Clone(timeline.Events)
	return timeline
}

// Reviewed returns a delete of a pod with webhook reviews: one of the user's delete, two of the kubelet's, the second with a denial.
func Reviewed() (timeline v1alpha1.Timeline) {
	decode("reviewed.json", &timeline)
	return timeline
}
