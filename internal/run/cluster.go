package run

import (
	"context"
	"sync"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

// judging is what goes on while clusters are visited and judged.
type judging struct {
	Options
	visits    []*visited
	contracts map[string]v1alpha1.Behavior
	telling   sync.Mutex
}

// judge visits the clusters, and has workers judge the chosen behaviours on each that could be visited.
func judge(ctx context.Context, options Options) []*visited {
	j := &judging{Options: options, contracts: map[string]v1alpha1.Behavior{}}
	for _, cluster := range options.Clusters {
		j.visits = append(j.visits, &visited{Cluster: cluster, report: &report.Cluster{Name: cluster.Name}, results: map[string]report.Result{}})
	}
	for _, behavior := range options.Plan.Catalogue {
		j.contracts[behavior.ID] = behavior.Behavior
	}
	pool := workers.Pool{
		Executable: options.Executable, Processes: options.Processes, Timeout: options.Timeout, Durations: options.Durations,
	}
	visit := func(cluster int) (workers.Cluster, bool) { return j.visit(ctx, j.visits[cluster]) }
	pool.Run(ctx, len(j.visits), visit, options.Plan.Chosen(), func(event workers.Event) {
		j.hear(event, ctx.Err() != nil)
	})
	return j.visits
}

// tell tells the progress one thing at a time.
func (j *judging) tell(what func(Progress)) {
	j.telling.Lock()
	defer j.telling.Unlock()
	what(j.Progress)
}

// visit begins on one cluster, and says how workers reach it if it can be judged.
func (j *judging) visit(ctx context.Context, v *visited) (workers.Cluster, bool) {
	j.tell(func(p Progress) { p.Visiting(v.Name) })
	v.begin(ctx, j.Options)
	j.tell(func(p Progress) { p.Visited(*v.report, len(j.Plan.Chosen())) })
	if v.visit == nil || v.report.Problem != "" {
		return workers.Cluster{}, false
	}
	return workers.Cluster{Connection: v.Connection, Terms: v.visit.Terms}, true
}

// hear notes what workers say, and passes it on.
func (j *judging) hear(event workers.Event, interrupted bool) {
	v := j.visits[event.Cluster]
	if event.Began != "" {
		j.tell(func(p Progress) { p.Began(v.Name, event.Began) })
		return
	}
	result := report.Result{Behavior: j.contracts[event.Lost], Outcome: report.Errored, Reason: event.Reason}
	if event.Ended != nil {
		result = resultOf(*event.Ended)
	}
	if interrupted && result.Outcome == report.Skipped && result.Reason == "" {
		return // Ginkgo skips what an interruption leaves out
	}
	v.results[result.ID] = result
	j.tell(func(p Progress) { p.Ended(v.Name, result) })
}
