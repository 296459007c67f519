package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// figureName is what a figure measures, in words.
func figureName(f v1alpha1.Figure) string {
	switch f.Act {
	case v1alpha1.BackgroundDelete:
		return "Background: owner gone to dependent gone"
	case v1alpha1.ForegroundDelete:
		levels := "no dependents"
		if f.Levels == 1 {
			levels = "1 level of dependents"
		} else if f.Levels > 1 {
			levels = fmt.Sprintf("%d levels of dependents", f.Levels)
		}
		return "Foreground, " + levels + ": waiting to gone"
	case v1alpha1.OrphanRelease:
		return "Orphan: owner terminating to reference removed"
	case v1alpha1.OrphanDelete:
		return "Orphan: owner terminating to finalizer removed"
	case v1alpha1.NamespaceDelete:
		return "Namespace: terminating to gone"
	}
	return string(f.Act)
}

// same is true of two figures that measure the same.
func same(a, b v1alpha1.Figure) bool { return a.Act == b.Act && a.Levels == b.Levels }

// measured is the report with the figures of its timelines.
func measured(r v1alpha1.Report) v1alpha1.Report {
	r.Clusters = slices.Clone(r.Clusters)
	for i := range r.Clusters {
		r.Clusters[i].Figures = figuresOf(r.Clusters[i].Results)
	}
	return r
}

// sample is one deletion that was measured.
type sample struct {
	act    v1alpha1.Act
	levels int
	took   time.Duration
}

func figuresOf(results []v1alpha1.Result) []v1alpha1.Figure {
	type key struct {
		act    v1alpha1.Act
		levels int
	}
	samples := map[key][]time.Duration{}
	for _, result := range results {
		for _, s := range samplesOf(result.Timeline) {
			samples[key{s.act, s.levels}] = append(samples[key{s.act, s.levels}], s.took)
		}
	}
	var figures []v1alpha1.Figure
	for k, took := range samples {
		slices.Sort(took)
		figures = append(figures, v1alpha1.Figure{
			Act: k.act, Levels: k.levels, Count: len(took),
			P50: quantile(took, 0.5), P90: quantile(took, 0.9), P99: quantile(took, 0.99), Max: quantile(took, 1),
		})
	}
	slices.SortFunc(figures, func(a, b v1alpha1.Figure) int {
		return cmp.Or(cmp.Compare(slices.Index(v1alpha1.Acts, a.Act), slices.Index(v1alpha1.Acts, b.Act)), cmp.Compare(a.Levels, b.Levels))
	})
	return figures
}

// quantile is the smallest of the sorted durations that a share q of them does not exceed, in seconds to the
// microsecond: report.json should not promise digits that no clock has.
func quantile(sorted []time.Duration, q float64) float64 {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1].Round(time.Microsecond).Seconds()
}

// family is the objects of one timeline with what is asked of them together.
type family struct {
	objects  []*object
	requests []v1alpha1.Request
}

// samplesOf measures every deletion of a timeline that only the cluster's own controllers had a part in.
func samplesOf(timeline v1alpha1.Timeline) []sample {
	f := family{objectsOf(timeline), timeline.Requests}
	var samples []sample
	for _, o := range f.objects {
		samples = append(samples, f.background(o)...)
		samples = append(samples, f.foreground(o)...)
		samples = append(samples, f.orphaning(o)...)
		samples = append(samples, f.namespace(o)...)
	}
	return slices.DeleteFunc(samples, func(s sample) bool { return s.took < 0 })
}

// background measures a dependent: from the end of its last owner, or its own beginning where that was later. One that
// waited for dependents of its own is left out.
func (f family) background(dependent *object) []sample {
	gone, ok := dependent.gone()
	if !ok || len(dependent.last().Owners) == 0 || dependent.ever(delayed) || dependent.ever(waiting) || f.asked(dependent) {
		return nil
	}
	from := dependent.born()
	for _, reference := range dependent.last().Owners {
		owner := f.find(reference)
		if owner == nil || owner.ever(carrying(metav1.FinalizerDeleteDependents)) {
			return nil
		}
		ownerGone, ok := owner.gone()
		if !ok {
			return nil
		}
		from = latest(from, ownerGone)
	}
	return []sample{{act: v1alpha1.BackgroundDelete, took: gone.Sub(from)}}
}

// foreground measures an owner that waited for its dependents.
func (f family) foreground(owner *object) []sample {
	blocked := carrying(metav1.FinalizerDeleteDependents)
	from, waited := owner.first(blocked)
	gone, ok := owner.gone()
	if !waited || !ok || owner.ever(carrying(metav1.FinalizerOrphanDependents)) {
		return nil
	}
	levels, free := f.below(owner, map[*object]bool{})
	if !free {
		return nil
	}
	return []sample{{act: v1alpha1.ForegroundDelete, levels: levels, took: gone.Sub(from)}}
}

// below counts the levels of dependents below an owner. It is not free when the owner or one of them was delayed.
func (f family) below(owner *object, visited map[*object]bool) (levels int, free bool) {
	if owner.ever(delayed) {
		return 0, false
	}
	visited[owner] = true
	for _, dependent := range f.objects {
		if visited[dependent] || !dependent.ever(owner.owns) {
			continue
		}
		deeper, free := f.below(dependent, visited)
		if !free {
			return 0, false
		}
		levels = max(levels, deeper+1)
	}
	return levels, true
}

// orphaning measures an owner that released its dependents: each dependent, and the collector's whole work. A hold on
// the owner does no harm here, since the collector's work ends with the removal of its own finalizer.
func (f family) orphaning(owner *object) []sample {
	releasing := carrying(metav1.FinalizerOrphanDependents)
	from, ok := owner.first(releasing)
	if !ok {
		return nil
	}
	after := func(is func(v1alpha1.Observation) bool) func(v1alpha1.Observation) bool {
		return func(event v1alpha1.Observation) bool { return event.At.After(from) && is(event) }
	}
	var samples []sample
	for _, dependent := range f.objects {
		released := after(func(event v1alpha1.Observation) bool { return !ended(event) && !owner.owns(event) })
		if at, ok := dependent.first(released); ok && dependent.ever(owner.owns) {
			samples = append(samples, sample{act: v1alpha1.OrphanRelease, took: at.Sub(from)})
		}
	}
	if at, ok := owner.first(after(func(event v1alpha1.Observation) bool { return !releasing(event) })); ok {
		samples = append(samples, sample{act: v1alpha1.OrphanDelete, took: at.Sub(from)})
	}
	return samples
}

// namespace measures a namespace whose content nobody held.
func (f family) namespace(namespace *object) []sample {
	if namespace.last().Kind != "Namespace" || namespace.ever(delayed) {
		return nil
	}
	from, ok := namespace.first(terminating)
	gone, ended := namespace.gone()
	if !ok || !ended {
		return nil
	}
	for _, content := range f.objects {
		if content.last().Namespace == namespace.last().Name && content.ever(delayed) {
			return nil
		}
	}
	return []sample{{act: v1alpha1.NamespaceDelete, took: gone.Sub(from)}}
}

// find is the object that an owner reference means.
func (f family) find(reference metav1.OwnerReference) *object {
	i := slices.IndexFunc(f.objects, func(o *object) bool { return o.uid == reference.UID })
	if i < 0 {
		return nil
	}
	return f.objects[i]
}

// asked is true when the runner itself asked for the end of the object or of its namespace, so that it says nothing of
// the collector.
func (f family) asked(o *object) bool {
	return slices.ContainsFunc(f.requests, func(request v1alpha1.Request) bool {
		path, _, _ := strings.Cut(request.Path, "?")
		return request.Verb == "DELETE" &&
			(strings.HasSuffix(path, "/"+o.last().Name) || strings.HasSuffix(path, "/namespaces/"+o.last().Namespace))
	})
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
