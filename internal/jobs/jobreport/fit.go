package jobreport

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/jobs/jobstore"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// shortTimeline is the number of requests, events and reviews that remain of each kind of a truncated timeline.
const shortTimeline = 100

// truncations shorten the evidence of a result, each more than the one before. They return whether they changed it. What shows a failure
// is shortened last.
var truncations = []struct {
	what     string
	truncate func(*v1alpha1.Result) bool
}{
	{"the timelines of passed behaviors", func(r *v1alpha1.Result) bool {
		return r.Outcome == v1alpha1.Passed && shorten(&r.Timeline, 0)
	}},
	{"the bodies of requests", withoutBodies},
	{"long timelines", func(r *v1alpha1.Result) bool { return shorten(&r.Timeline, shortTimeline) }},
	{"all timelines", func(r *v1alpha1.Result) bool { return shorten(&r.Timeline, 0) }},
}

// fit returns the report as it is stored, in at most the given number of bytes. If it is larger, its evidence is truncated, and a warning
// lists what was.
func fit(whole v1alpha1.Report, limit int) ([]byte, error) {
	compressed, err := compress(whole)
	var without []string
	for _, step := range truncations {
		if err != nil || len(compressed) <= limit {
			break
		}
		without = append(without, step.what)
		whole = truncated(whole, step.truncate, without)
		compressed, err = compress(whole)
	}
	if err == nil && len(compressed) > limit {
		err = fmt.Errorf("it has %d bytes without evidence, more than the %d that are stored; distribute the run over more shards", len(compressed), limit)
	}
	return compressed, err
}

func compress(whole v1alpha1.Report) ([]byte, error) {
	var content bytes.Buffer
	if err := report.WriteJSON(&content, whole); err != nil {
		return nil, err
	}
	return jobstore.Compress(content.Bytes())
}

// notice begins the warning about truncated evidence.
const notice = "the report was too large to be stored in ConfigMaps, so evidence was truncated: "

// truncated returns a copy of a report with truncated evidence. The warning of each cluster whose evidence was truncated lists what was.
func truncated(whole v1alpha1.Report, truncate func(*v1alpha1.Result) bool, without []string) v1alpha1.Report {
	whole.Clusters = slices.Clone(whole.Clusters)
	for i := range whole.Clusters {
		cluster, changed := &whole.Clusters[i], false
		cluster.Results = slices.Clone(cluster.Results)
		for j := range cluster.Results {
			changed = truncate(&cluster.Results[j]) || changed
		}
		if changed {
			before, _, _ := strings.Cut(cluster.Warning, notice)
			cluster.Warning = strings.TrimPrefix(strings.TrimSuffix(before, "; ")+"; "+notice+strings.Join(without, ", "), "; ")
		}
	}
	return whole
}

// shorten keeps the first entries of a timeline.
func shorten(timeline *v1alpha1.Timeline, most int) bool {
	shortened := v1alpha1.Timeline{
		Requests: timeline.Requests[:min(most, len(timeline.Requests))],
		Events:   timeline.Events[:min(most, len(timeline.Events))],
		Reviews:  timeline.Reviews[:min(most, len(timeline.Reviews))],
	}
	changed := len(shortened.Requests) < len(timeline.Requests) || len(shortened.Events) < len(timeline.Events) ||
		len(shortened.Reviews) < len(timeline.Reviews)
	*timeline = shortened
	return changed
}

// withoutBodies removes the bodies of requests.
func withoutBodies(result *v1alpha1.Result) bool {
	changed := false
	result.Timeline.Requests = slices.Clone(result.Timeline.Requests)
	for i := range result.Timeline.Requests {
		changed = changed || result.Timeline.Requests[i].Body != ""
		result.Timeline.Requests[i].Body = ""
	}
	return changed
}
