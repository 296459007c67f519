package compare

import (
	"math"
	"slices"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// DefaultDrift is the tolerance for medians of figures over several reports, in either direction.
var DefaultDrift = Tolerance{Factor: 1.5, Least: minChange}

const (
	// minPerSide is the minimum number of reports on either side of a drift that are nearer to their median than to the other one. One or
	// two slow runs are no drift.
	minPerSide = 3
	// maxOutliers is the maximum share of other reports on a side.
	maxOutliers = 0.25
	// spreads is the minimum drift as a multiple of the spread of the reports around their medians. A test measures how many series of
	// random durations seem to drift.
	spreads = 4
	// deviations converts a median absolute deviation to the standard deviation of normally distributed values.
	deviations = 1.4826
)

// Drift is a duration that has changed for good: the median of a figure, or the duration of a behavior that passes.
type Drift struct {
	Cluster string `json:"cluster"`
	// Behavior is the id of a behavior, and Figure the name of a figure; one is empty.
	Behavior string `json:"behavior,omitempty"`
	Figure   string `json:"figure,omitempty"`
	// OldSeconds and NewSeconds are the medians of the reports before, and of those from the report with the number Since.
	OldSeconds float64 `json:"oldSeconds"`
	NewSeconds float64 `json:"newSeconds"`
	Since      int     `json:"since"`
	// SinceVersion is the version of the server in that report.
	SinceVersion string `json:"sinceVersion,omitempty"`
	// Before and After count the reports on both sides that have the duration.
	Before int `json:"before"`
	After  int `json:"after"`
}

// Figures returns the figures that have drifted over several reports of one cluster, the oldest first, by DefaultDrift.
func Figures(clusters []v1alpha1.Cluster) []Drift {
	c := column{clusters: map[int]v1alpha1.Cluster{}}
	for i, cluster := range clusters {
		c.clusters[i] = cluster
	}
	return c.named(c.figures(len(clusters), DefaultDrift))
}

// drifts returns the durations of a cluster that have drifted: figures first, in the order of the newest report.
func (c column) drifts(reports int, ofBehaviors, ofFigures Tolerance) []Drift {
	return c.named(append(c.figures(reports, ofFigures), c.behaviors(reports, ofBehaviors)...))
}

// named adds the names of the cluster and of its versions.
func (c column) named(found []Drift) []Drift {
	for i := range found {
		found[i].Cluster, found[i].SinceVersion = c.name, c.clusters[found[i].Since-1].ServerVersion
	}
	return found
}

func (c column) figures(reports int, ofFigures Tolerance) []Drift {
	var found []Drift
	for _, figure := range c.clusters[reports-1].Figures {
		values := c.values(reports, func(cluster v1alpha1.Cluster) float64 {
			i := slices.IndexFunc(cluster.Figures, func(f v1alpha1.Figure) bool { return figures.Same(f, figure) })
			if i < 0 || cluster.Figures[i].Count < minMeasured {
				return 0
			}
			return cluster.Figures[i].P50
		})
		if drift, ok := driftOf(values, ofFigures); ok {
			drift.Figure = figures.Name(figure)
			found = append(found, drift)
		}
	}
	return found
}

func (c column) behaviors(reports int, ofBehaviors Tolerance) []Drift {
	var found []Drift
	seconds := make([]map[string]float64, reports)
	for i, cluster := range c.clusters {
		seconds[i] = map[string]float64{}
		for _, result := range cluster.Results {
			if result.Outcome == v1alpha1.Passed {
				seconds[i][result.ID] = result.Seconds
			}
		}
	}
	for _, result := range c.clusters[reports-1].Results {
		values := make([]float64, reports)
		for i := range values {
			values[i] = seconds[i][result.ID]
		}
		if drift, ok := driftOf(values, ofBehaviors); ok {
			drift.Behavior = result.ID
			found = append(found, drift)
		}
	}
	return found
}

// values returns a duration in each report; 0 where a report does not have it.
func (c column) values(reports int, of func(v1alpha1.Cluster) float64) []float64 {
	values := make([]float64, reports)
	for i, cluster := range c.clusters {
		values[i] = of(cluster)
	}
	return values
}

// driftOf finds the place in a series of durations, in seconds, where the medians before and after it describe the series best, and
// reports whether they differ by more than the tolerance and the noise. Durations are compared by their ratios, because noise grows with
// them. Zeros are left out.
func driftOf(values []float64, tolerance Tolerance) (Drift, bool) {
	var logs []float64
	var at []int
	for i, value := range values {
		if value > 0 {
			logs, at = append(logs, math.Log(value)), append(at, i)
		}
	}
	split, least := 0, math.Inf(1)
	for candidate := minPerSide; candidate <= len(logs)-minPerSide; candidate++ {
		total := 0.0
		for _, distance := range distances(logs, candidate) {
			total += distance
		}
		if total < least {
			split, least = candidate, total
		}
	}
	if split == 0 {
		return Drift{}, false
	}
	before, after := median(logs[:split]), median(logs[split:])
	spread := deviations * median(distances(logs, split))
	drift := Drift{OldSeconds: math.Exp(before), NewSeconds: math.Exp(after), Since: at[split] + 1, Before: split, After: len(logs) - split}
	difference, seconds := math.Abs(after-before), math.Abs(drift.NewSeconds-drift.OldSeconds)
	tolerated := difference < math.Log(tolerance.Factor) || seconds < tolerance.Least.Seconds()
	noise := difference <= spreads*spread || !fits(logs[:split], before, after) || !fits(logs[split:], after, before)
	return drift, !tolerated && !noise
}

// fits reports whether enough values are nearer to their own median than to another.
func fits(values []float64, own, other float64) bool {
	near := 0
	for _, value := range values {
		if math.Abs(value-own) < math.Abs(value-other) {
			near++
		}
	}
	return near >= minPerSide && float64(len(values)-near) <= maxOutliers*float64(len(values))
}

// distances returns the distance of each value from the median of its side of a split.
func distances(values []float64, split int) []float64 {
	var all []float64
	for _, side := range [][]float64{values[:split], values[split:]} {
		middle := median(side)
		for _, value := range side {
			all = append(all, math.Abs(value-middle))
		}
	}
	return all
}

// median returns the median of values, of which there must be one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
