package progress

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// live draws a bar for each cluster, with the counts and the running behaviors. Failures are printed above the bars.
type live struct {
	above *lines
	bars  *mpb.Progress
	mu    sync.Mutex
	rows  map[string]*row
}

// row is a cluster's bar.
type row struct {
	mu      sync.Mutex
	bar     *mpb.Bar
	count   map[v1alpha1.Outcome]int
	running map[string]time.Time
	phase   string
}

// shown is the maximum number of running behaviors in a row.
const shown = 2

func newLive(terminal *os.File, above *lines) *live {
	l := &live{
		above: above,
		bars:  mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(24), mpb.WithRefreshRate(100*time.Millisecond)),
		rows:  map[string]*row{},
	}
	above.out = visible.NewLog(l.bars)
	return l
}

// row returns the bar of a cluster, and creates it on first use.
func (l *live) row(cluster string) *row {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, known := l.rows[cluster]; known {
		return r
	}
	r := &row{count: map[v1alpha1.Outcome]int{}, running: map[string]time.Time{}, phase: "setting up"}
	r.bar = l.bars.AddBar(0,
		mpb.PrependDecorators(decor.Name(visible.Text(cluster), decor.WCSyncSpaceR), decor.CountersNoUnit("%3d/%3d")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return r.String() })),
	)
	l.rows[cluster] = r
	return r
}

// String is the text next to a bar.
func (r *row) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []string
	for _, outcome := range v1alpha1.Outcomes {
		if n := r.count[outcome]; n > 0 {
			parts = append(parts, colors[outcome].Sprintf("%d %s", n, outcome))
		}
	}
	if r.phase != "" {
		return strings.Join(append(parts, r.phase), "  ")
	}
	ids := make([]string, 0, len(r.running))
	for id := range r.running {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return r.running[a].Compare(r.running[b]) })
	for i, id := range ids {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(ids)-shown))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", id, time.Since(r.running[id]).Round(100*time.Millisecond)))
	}
	return strings.Join(parts, "  ")
}

func (r *row) change(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// SettingUp shows the cluster's row.
func (l *live) SettingUp(cluster string) { l.row(cluster) }

// SetUp prints the findings of the cluster, and starts its bar.
func (l *live) SetUp(cluster v1alpha1.Cluster, chosen int) {
	r := l.row(cluster.Name)
	l.above.SetUp(cluster, chosen)
	if cluster.Problem != "" {
		r.change(func() { r.phase = "untested" })
		r.bar.Abort(false)
		return
	}
	r.change(func() { r.phase = "" })
	r.bar.SetTotal(int64(chosen), false)
}

// Slow prints a warning with an estimate.
func (l *live) Slow(cluster string, latency preflight.Latency, takes time.Duration) {
	l.above.Slow(cluster, latency, takes)
}

// Began shows a running behavior.
func (l *live) Began(cluster, id string) {
	r := l.row(cluster)
	r.change(func() { r.running[id] = time.Now() })
}

// Ended advances the bar, and prints failures.
func (l *live) Ended(cluster string, result v1alpha1.Result) {
	r := l.row(cluster)
	r.change(func() { delete(r.running, result.ID); r.count[result.Outcome]++ })
	r.bar.Increment()
	if result.Outcome != v1alpha1.Passed && result.Outcome != v1alpha1.Skipped {
		l.above.Ended(cluster, result)
	}
}

// Retrying removes a behavior from the running ones.
func (l *live) Retrying(cluster string, result v1alpha1.Result) {
	r := l.row(cluster)
	r.change(func() { delete(r.running, result.ID) })
}

// TearingDown shows that the cleanup takes some seconds.
func (l *live) TearingDown(cluster string) {
	r := l.row(cluster)
	r.change(func() { clear(r.running); r.phase = "cleaning up" })
}

// Close draws the final state.
func (l *live) Close() error {
	for _, r := range l.rows {
		r.change(func() { clear(r.running); r.phase = "" })
		r.bar.Abort(false)
	}
	l.bars.Wait()
	return nil
}
