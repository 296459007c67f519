package reporttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// Fleet returns a report of many behaviors on many clusters with realistic timelines. In testdata/fleet.json the first cluster has all
// results, and the others those that differ. More clusters and behaviors repeat these.
func Fleet(behaviors, clusters int) v1alpha1.Report {
	r := read("fleet.json")
	templates := r.Clusters
	all := templates[0].Results
	for n := len(all); n < behaviors; n++ {
		another := all[0]
		another.ID, another.Statement = fmt.Sprintf("cascade.workload.n%03d", n), fmt.Sprintf("collects what workload %d made", n)
		all = append(all, another)
	}
	all = all[:behaviors]
	slices.SortFunc(all, func(a, b v1alpha1.Result) int { return strings.Compare(a.ID, b.ID) })
	r.Clusters = nil
	for c := range clusters {
		cluster := templates[c%len(templates)]
		if round := c / len(templates); round > 0 {
			cluster.Name = fmt.Sprintf("%s-%d", cluster.Name, round+1)
		}
		differing := cluster.Results
		cluster.Results = slices.Clone(all)
		for i, result := range cluster.Results {
			result.Timeline.Events = slices.Clone(result.Timeline.Events)
			for _, other := range differing {
				if other.ID == result.ID {
					result.Outcome, result.Reason, result.Failure = other.Outcome, other.Reason, other.Failure
				}
			}
			if result.Outcome == v1alpha1.Skipped {
				result.Start, result.Seconds, result.Timeline = time.Time{}, 0, v1alpha1.Timeline{}
			}
			cluster.Results[i] = result
		}
		r.Clusters = append(r.Clusters, cluster)
	}
	return report.Concluded(figures.Measure(r))
}
