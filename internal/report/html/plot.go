package html

import (
	"fmt"
	"math"
	"slices"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// plot is one kind of deletion in report.html: a row for each cluster; all plots share a logarithmic axis.
type plot struct {
	Name string
	Rows []plotRow
}

// plotRow is the figure of one cluster: its numbers, and their positions on the axis in percent of its width.
type plotRow struct {
	Cluster            string
	Count              int
	Rate               string
	P50, P90, P99, Max string

	AtP50, AtP90, AtP99, AtMax float64
}

// tick is a mark of the axis.
type tick struct {
	At   float64
	Name string
}

// addPlots adds every figure to an axis from the decade below the shortest time to the one above the longest.
func (p *page) addPlots(r v1alpha1.Report) {
	a := axisOf(r)
	for _, kind := range kindsOf(r) {
		drawn := plot{Name: figures.Name(kind)}
		for _, cluster := range r.Clusters {
			for _, f := range cluster.Figures {
				if figures.Same(f, kind) {
					drawn.Rows = append(drawn.Rows, a.row(cluster.Name, f))
				}
			}
		}
		p.Plots = append(p.Plots, drawn)
	}
	if len(p.Plots) > 0 {
		p.Ticks = a.ticks()
	}
}

// kindsOf returns one figure of each kind, in the order of reports.
func kindsOf(r v1alpha1.Report) []v1alpha1.Figure {
	var kinds []v1alpha1.Figure
	for _, cluster := range r.Clusters {
		kinds = append(kinds, cluster.Figures...)
	}
	slices.SortStableFunc(kinds, figures.Order)
	return slices.CompactFunc(kinds, figures.Same)
}

// axis is a logarithmic axis of times, from and to in powers of ten of a second.
type axis struct{ from, to float64 }

// shortest is the lower limit of the axis, the resolution of watches.
const shortest = 0.001

func axisOf(r v1alpha1.Report) axis {
	low, high := math.Inf(1), shortest
	for _, cluster := range r.Clusters {
		for _, f := range cluster.Figures {
			low, high = min(low, max(f.P50, shortest)), max(high, f.Max)
		}
	}
	low = min(low, high)
	a := axis{math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))}
	if a.to <= a.from {
		a.to = a.from + 1
	}
	return a
}

// at returns the position of a time, in percent; the ends have a margin for the marks and their names.
func (a axis) at(seconds float64) float64 {
	const margin = 4
	share := (math.Log10(max(seconds, math.Pow(10, a.from))) - a.from) / (a.to - a.from)
	return math.Round(100*(margin+(100-2*margin)*share)) / 100
}

func (a axis) row(cluster string, f v1alpha1.Figure) plotRow {
	return plotRow{
		Cluster: cluster, Count: f.Count, Rate: figures.Rate(f),
		P50: report.Seconds(f.P50), P90: report.Seconds(f.P90), P99: report.Seconds(f.P99), Max: report.Seconds(f.Max),
		AtP50: a.at(f.P50), AtP90: a.at(f.P90), AtP99: a.at(f.P99), AtMax: a.at(f.Max),
	}
}

func (a axis) ticks() []tick {
	var ticks []tick
	for power := a.from; power <= a.to; power++ {
		seconds := math.Pow(10, power)
		name := fmt.Sprintf("%.0f s", seconds)
		if seconds < 1 {
			name = fmt.Sprintf("%.0f ms", seconds*1000)
		}
		ticks = append(ticks, tick{a.at(seconds), name})
	}
	return ticks
}
