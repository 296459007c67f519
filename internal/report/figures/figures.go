// Package figures computes from the timelines of a report how long the cluster took to delete objects.
//
// Canaries of barriers count like other objects: their owner is deleted in the background like any other, and the collector's lag is the
// same for both.
package figures

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// longestName is the maximum length of a finalizer in characters: name, slash and domain.
const longestName = 63 + 1 + 253

// Name describes a figure.
func Name(f v1alpha1.Figure) string {
	switch f.Operation {
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
	case v1alpha1.FinalizerRelease:
		return "Finalizer " + report.OneLine(f.Finalizer, longestName) + ": terminating to removed"
	}
	return string(f.Operation)
}

// Rate describes how many objects were deleted per second; empty when that was not measured.
func Rate(f v1alpha1.Figure) string {
	if f.PerSecond == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f a second)", f.PerSecond)
}

// Same reports whether two figures measure the same.
func Same(a, b v1alpha1.Figure) bool { return Order(a, b) == 0 }

// Order compares two figures by what they measure, in the order of reports.
func Order(a, b v1alpha1.Figure) int {
	return cmp.Or(cmp.Compare(slices.Index(v1alpha1.Operations, a.Operation), slices.Index(v1alpha1.Operations, b.Operation)),
		cmp.Compare(a.Levels, b.Levels), cmp.Compare(a.Finalizer, b.Finalizer))
}

// Measure returns the report with the figures of its timelines. A cluster that has figures keeps them, because they were computed when its
// report was written.
func Measure(r v1alpha1.Report) v1alpha1.Report {
	r.Clusters = slices.Clone(r.Clusters)
	for i := range r.Clusters {
		if r.Clusters[i].Figures == nil {
			r.Clusters[i].Figures = figuresOf(r.Clusters[i])
		}
	}
	return r
}

// sample is one measured deletion.
type sample struct {
	operation v1alpha1.Operation
	levels    int
	// finalizer is the removed finalizer, for releases.
	finalizer string
	took      time.Duration
	// owner is the owner whose deletion started it, for background deletes.
	owner types.UID
}

func figuresOf(cluster v1alpha1.Cluster) []v1alpha1.Figure {
	samples := map[v1alpha1.Figure][]time.Duration{}
	rate := 0.0
	for _, result := range cluster.Results {
		measured := samplesOf(result.Timeline)
		rate = max(rate, rateOf(measured))
		if cluster.Resource != "" {
			measured = append(measured, releasesOf(result.Timeline)...)
		}
		for _, s := range measured {
			kind := v1alpha1.Figure{Operation: s.operation, Levels: s.levels, Finalizer: s.finalizer}
			samples[kind] = append(samples[kind], s.took)
		}
	}
	var figures []v1alpha1.Figure
	for figure, took := range samples {
		slices.Sort(took)
		figure.Count = len(took)
		figure.P50, figure.P90, figure.P99, figure.Max = quantile(took, 0.5), quantile(took, 0.9), quantile(took, 0.99), quantile(took, 1)
		figures = append(figures, figure)
	}
	slices.SortFunc(figures, Order)
	if len(figures) > 0 && figures[0].Operation == v1alpha1.BackgroundDelete {
		figures[0].PerSecond = rate
	}
	return figures
}

// minForRate is the minimum number of an owner's dependents for a rate.
const minForRate = 100

// rateOf returns how many dependents of one owner were deleted per second, from its deletion to that of the last one; zero when no owner
// had enough.
func rateOf(samples []sample) float64 {
	took := map[types.UID]time.Duration{}
	count := map[types.UID]int{}
	for _, s := range samples {
		took[s.owner] = max(took[s.owner], s.took)
		count[s.owner]++
	}
	rate := 0.0
	for owner := range took {
		if owner != "" && count[owner] >= minForRate && took[owner] > 0 {
			rate = max(rate, math.Round(float64(count[owner])/took[owner].Seconds()))
		}
	}
	return rate
}

// quantile returns the smallest of the sorted durations that a share q of them does not exceed, in seconds, rounded to the precision of the
// clocks.
func quantile(sorted []time.Duration, q float64) float64 {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1].Round(time.Microsecond).Seconds()
}

// family is the objects of one timeline, and all of its requests.
type family struct {
	objects  []*report.Object
	requests []v1alpha1.Request
}

// samplesOf measures every deletion of a timeline in which only the cluster's own controllers were involved.
func samplesOf(timeline v1alpha1.Timeline) []sample {
	objects, _ := report.ObjectsOf(timeline)
	f := family{objects, timeline.Requests}
	var samples []sample
	for _, o := range f.objects {
		samples = append(samples, f.background(o)...)
		samples = append(samples, f.foreground(o)...)
		samples = append(samples, f.orphaning(o)...)
		samples = append(samples, f.namespace(o)...)
	}
	return slices.DeleteFunc(samples, func(s sample) bool { return s.took < 0 })
}

// background measures a dependent: from the deletion of its last owner, or its own creation if that was later. It excludes dependents that
// waited for further dependents.
func (f family) background(dependent *report.Object) []sample {
	gone, ok := dependent.DeletedAt()
	if !ok || len(dependent.Last().Owners) == 0 || dependent.Ever(delayed) || dependent.Ever(waiting) || f.requested(dependent) {
		return nil
	}
	from, last := dependent.FirstSeen(), types.UID("")
	for _, reference := range dependent.Last().Owners {
		owner := f.find(reference)
		if owner == nil || owner.Ever(carrying(metav1.FinalizerDeleteDependents)) {
			return nil
		}
		ownerGone, ok := owner.DeletedAt()
		if !ok {
			return nil
		}
		if !ownerGone.Before(from) {
			from, last = ownerGone, reference.UID
		}
	}
	return []sample{{operation: v1alpha1.BackgroundDelete, took: gone.Sub(from), owner: last}}
}

// foreground measures an owner that waited for its dependents.
func (f family) foreground(owner *report.Object) []sample {
	blocked := carrying(metav1.FinalizerDeleteDependents)
	from, waited := owner.First(blocked)
	gone, ok := owner.DeletedAt()
	if !waited || !ok || owner.Ever(carrying(metav1.FinalizerOrphanDependents)) {
		return nil
	}
	levels, free := f.below(owner, map[*report.Object]bool{})
	if !free {
		return nil
	}
	return []sample{{operation: v1alpha1.ForegroundDelete, levels: levels, took: gone.Sub(from)}}
}

// below counts the levels of dependents below an owner. free is false when the owner or one of them was delayed.
func (f family) below(owner *report.Object, visited map[*report.Object]bool) (levels int, free bool) {
	if owner.Ever(delayed) {
		return 0, false
	}
	visited[owner] = true
	for _, dependent := range f.objects {
		if visited[dependent] || !dependent.Ever(ownedBy(owner)) {
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

// orphaning measures an owner that released its dependents: each dependent, and the collector's whole work. A hold on the owner does not
// matter, because the collector's work ends with the removal of its finalizer.
func (f family) orphaning(owner *report.Object) []sample {
	releasing := carrying(metav1.FinalizerOrphanDependents)
	from, ok := owner.First(releasing)
	if !ok {
		return nil
	}
	after := func(is func(v1alpha1.Observation) bool) func(v1alpha1.Observation) bool {
		return func(event v1alpha1.Observation) bool { return event.At.After(from) && is(event) }
	}
	var samples []sample
	for _, dependent := range f.objects {
		owned := ownedBy(owner)
		released := after(func(event v1alpha1.Observation) bool { return !report.Deleted(event) && !owned(event) })
		if at, ok := dependent.First(released); ok && dependent.Ever(owned) {
			samples = append(samples, sample{operation: v1alpha1.OrphanRelease, took: at.Sub(from)})
		}
	}
	if at, ok := owner.First(after(func(event v1alpha1.Observation) bool { return !releasing(event) })); ok {
		samples = append(samples, sample{operation: v1alpha1.OrphanDelete, took: at.Sub(from)})
	}
	return samples
}

// namespace measures a namespace without held content.
func (f family) namespace(namespace *report.Object) []sample {
	if namespace.Kind != "Namespace" || namespace.Ever(delayed) {
		return nil
	}
	from, ok := namespace.First(terminating)
	gone, ended := namespace.DeletedAt()
	if !ok || !ended {
		return nil
	}
	for _, content := range f.objects {
		if content.Namespace == namespace.Name && content.Ever(delayed) {
			return nil
		}
	}
	return []sample{{operation: v1alpha1.NamespaceDelete, took: gone.Sub(from)}}
}

// ours is the prefix of the finalizers that behaviors add and remove.
const ours = "deletion-conformance.github.io/"

// releasesOf measures how long other controllers took to remove their finalizers. A hold of the harness does not matter, because their work
// ends with the removal of their finalizers.
func releasesOf(timeline v1alpha1.Timeline) []sample {
	objects, _ := report.ObjectsOf(timeline)
	var releases []sample
	for _, object := range objects {
		for _, finalizer := range finalizersOf(object) {
			if strings.HasPrefix(finalizer, ours) || !foreign(finalizer) {
				continue
			}
			there := carrying(finalizer)
			from, _ := object.First(there)
			removed, ok := object.First(func(event v1alpha1.Observation) bool { return event.At.After(from) && !there(event) })
			if ok {
				releases = append(releases, sample{operation: v1alpha1.FinalizerRelease, finalizer: finalizer, took: removed.Sub(from)})
			}
		}
	}
	return releases
}

// finalizersOf returns the finalizers that an object had while it was terminating, without duplicates.
func finalizersOf(object *report.Object) []string {
	var all []string
	for _, event := range object.Events {
		if terminating(event) && !report.Deleted(event) {
			all = append(all, event.Finalizers...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// find returns the object of an owner reference.
func (f family) find(reference metav1.OwnerReference) *report.Object {
	i := slices.IndexFunc(f.objects, func(o *report.Object) bool { return o.UID == reference.UID })
	if i < 0 {
		return nil
	}
	return f.objects[i]
}

// requested reports whether the runner itself deleted the object, all of its kind, or its namespace, so that it does not measure the collector.
func (f family) requested(o *report.Object) bool {
	return slices.ContainsFunc(o.Requests, deletes) || slices.ContainsFunc(f.requests, func(request v1alpha1.Request) bool {
		about := request.Object
		if about == nil || !deletes(request) {
			return false
		}
		ofKind := about.Name == "" && about.Group == o.Group && about.Kind == o.Kind && about.Namespace == o.Namespace
		return ofKind || about.Kind == "Namespace" && about.Name == o.Namespace
	})
}

// deletes reports whether a request deletes its object.
func deletes(request v1alpha1.Request) bool {
	return request.Verb == http.MethodDelete || request.Subresource == "eviction"
}

func terminating(event v1alpha1.Observation) bool { return event.DeletionTimestamp != nil }

// carrying matches a terminating object with a finalizer.
func carrying(finalizer string) func(v1alpha1.Observation) bool {
	return func(event v1alpha1.Observation) bool {
		return terminating(event) && !report.Deleted(event) && slices.Contains(event.Finalizers, finalizer)
	}
}

// delayed matches an object whose deletion also waits for something other than the garbage collector: a grace period, or another finalizer,
// such as the harness's hold.
func delayed(event v1alpha1.Observation) bool {
	if !terminating(event) || report.Deleted(event) {
		return false
	}
	return event.GraceSeconds != nil && *event.GraceSeconds > 0 || slices.ContainsFunc(event.Finalizers, foreign)
}

// waiting matches a terminating object with a finalizer.
func waiting(event v1alpha1.Observation) bool {
	return terminating(event) && !report.Deleted(event) && len(event.Finalizers) > 0
}

func foreign(finalizer string) bool {
	return finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents
}

// ownedBy matches observations with the object as an owner.
func ownedBy(o *report.Object) func(v1alpha1.Observation) bool {
	return func(event v1alpha1.Observation) bool {
		return slices.ContainsFunc(event.Owners, func(owner metav1.OwnerReference) bool { return owner.UID == o.UID })
	}
}
