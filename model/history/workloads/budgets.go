package workloads

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// checkBudget checks that a PodDisruptionBudget allows as many disruptions as its ready pods permit. Those that an eviction has counted are no
// longer available, even if they still exist.
func (s State) checkBudget(object history.Event, found func(property *history.Property, format string, values ...any)) {
	ready := s.choose(pod, func(event history.Event) bool {
		return event.Workload.Group == object.Workload.Group && event.Workload.Ready && isActive(event) && !object.Workload.Disrupted.Has(bare(event.Name))
	})
	if allowed := max(int64(len(ready))-object.Workload.Replicas, 0); allowed != object.Workload.Allowed {
		found(Budgets, "requires %d ready pods, has %s, and allows %d disruptions", object.Workload.Replicas, list(ready), object.Workload.Allowed)
	}
}

// checkCounts checks that each eviction that a PodDisruptionBudget has counted has taken one of the disruptions that it allowed. Only the API
// server adds pods to those that it names.
func checkCounts(known *life) []history.Violation {
	var violations []history.Violation
	for i := 1; i < len(known.events); i++ {
		before, after := known.events[i-1].Workload, known.events[i].Workload
		if !after.Disrupted.Exceeds(before.Disrupted) {
			continue
		}
		added := after.Disrupted.Without(before.Disrupted.List()...)
		if len(added.List()) > 1 || before.Allowed < 1 || after.Allowed != before.Allowed-1 {
			violations = append(violations, broken(Evictions, known.name, "%s counted the evictions of %s: it allowed %d disruptions before that, and %d after it",
				known.name, added, before.Allowed, after.Allowed))
		}
	}
	return violations
}

// checkEviction checks that a ready pod which only an eviction can have deleted was counted by each PodDisruptionBudget that selected it.
func (r *record) checkEviction(uid string, known *life) []history.Violation {
	at := known.deletion()
	if at < 1 || !known.before(at).Workload.Ready {
		return nil
	}
	deletion := known.events[at]
	isOther := func(request history.Request) bool { return request.Operation.Verb != model.Evict }
	if !r.isDeleted(uid, deletion.At, always) || r.isDeleted(uid, deletion.At, isOther) || r.hasCause(known, at, 1) {
		return nil
	}
	var violations []history.Violation
	for _, other := range r.sorted() {
		if known := r.lives[other]; known.first().Workload.Kind == budget && r.selects(known, uid, at) && !counts(known, r.lives[uid], versionOf(deletion)) {
			violations = append(violations, broken(Evictions, known.name, "%s did not count the eviction of %s, which was ready: %s",
				known.name, r.lives[uid].name, deletion.Object))
		}
	}
	return violations
}

// selects reports whether a PodDisruptionBudget selected a pod from before its first eviction was sent until an event of it.
func (r *record) selects(known *life, uid string, at int) bool {
	object, sent := r.lives[uid], r.deletes[uid][0].Call
	for _, request := range r.deletes[uid] {
		sent = min(sent, request.Call)
	}
	last, exists := known.at(versionOf(object.events[at]))
	if !exists || last.Object.Terminating || known.first().At >= sent || object.first().At >= sent {
		return false
	}
	for i, event := range object.events[:at] {
		isCurrent := i+1 == len(object.events) || object.events[i+1].At >= sent // when the eviction was sent, or later
		if isCurrent && event.Workload.Group != last.Workload.Group {
			return false
		}
	}
	return true
}

// counts reports whether a PodDisruptionBudget has counted the eviction of a pod, or of an earlier one of its name, by a resourceVersion.
func counts(known, object *life, version uint64) bool {
	for _, event := range known.until(version) {
		if versionOf(event) >= versionOf(object.first()) && event.Workload.Disrupted.Has(bare(object.name)) {
			return true
		}
	}
	return false
}
