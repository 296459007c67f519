package workloads

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
)

// life is one object from its creation to its removal, or to the quiet moment.
type life struct {
	name string
	// events are in the order of their resourceVersions, and so are those of all objects.
	events []history.Event
}

func (l *life) first() history.Event { return l.events[0] }
func (l *life) last() history.Event  { return l.events[len(l.events)-1] }

// deletion is the index of the first event that shows the object as terminating or removed; -1 if none does.
func (l *life) deletion() int {
	return slices.IndexFunc(l.events, func(event history.Event) bool { return event.Type == history.Deleted || event.Object.Terminating })
}

// before is the event before the one with an index, or that one if it is the first.
func (l *life) before(index int) history.Event { return l.events[max(index-1, 0)] }

// at is the last event up to a resourceVersion, and whether the object existed then.
func (l *life) at(version uint64) (found history.Event, exists bool) {
	for _, event := range l.events {
		if versionOf(event) <= version {
			found, exists = event, event.Type != history.Deleted
		}
	}
	return found, exists
}

// until are the events up to a resourceVersion.
func (l *life) until(version uint64) []history.Event {
	end := slices.IndexFunc(l.events, func(event history.Event) bool { return versionOf(event) > version })
	if end < 0 {
		end = len(l.events)
	}
	return l.events[:end]
}

// versionOf is the resourceVersion of an event as a number. Those of all kinds have one order on a server whose resourceVersions are numbers.
func versionOf(event history.Event) uint64 { return history.Number(event.Object.ResourceVersion) }

// record is what happened up to the quiet moment.
type record struct {
	*history.History
	// events are all of them, in the order of their resourceVersions, and lives the objects by uid.
	events []history.Event
	lives  map[string]*life
	// deletes are those of clients that may have succeeded, evictions among them, by uid. Those of the namespace delete each object.
	deletes map[string][]history.Request
	emptied []history.Request
}

func recordOf(h *history.History) *record {
	r := &record{History: h, events: slices.Clone(h.Workloads[:h.Quiet]), lives: map[string]*life{}, deletes: map[string][]history.Request{}}
	slices.SortStableFunc(r.events, func(a, b history.Event) int { return cmp.Compare(versionOf(a), versionOf(b)) })
	for _, event := range r.events {
		if r.lives[event.Object.UID] == nil {
			r.lives[event.Object.UID] = &life{name: event.Name}
		}
		r.lives[event.Object.UID].events = append(r.lives[event.Object.UID].events, event)
	}
	for _, request := range h.Requests {
		refused := request.Outcome.Code >= 300 && request.Outcome.Code != 409 // a delete with grace period 0 is two writes; see GraceRequested
		deletes := request.Operation.Verb == model.Delete || request.Operation.Verb == model.Evict
		switch kind, _, _ := strings.Cut(request.Name, "/"); {
		case !deletes || refused:
		case kind == namespace:
			r.emptied = append(r.emptied, request)
		default:
			r.deletes[request.Operation.UID] = append(r.deletes[request.Operation.UID], request)
		}
	}
	return r
}

// sorted are the uids of all objects.
func (r *record) sorted() []string { return slices.Sorted(maps.Keys(r.lives)) }

// isDeleted reports whether a client may have deleted an object by some time.
func (r *record) isDeleted(uid string, by time.Duration, matches func(history.Request) bool) bool {
	return slices.ContainsFunc(slices.Concat(r.deletes[uid], r.emptied), func(request history.Request) bool { return request.Call <= by && matches(request) })
}

// always matches every delete.
func always(history.Request) bool { return true }

// checkQuiet checks what is left at the quiet moment. What a deleted object of the same name has left behind may delay its controller for minutes.
func checkQuiet(events []history.Event) []history.Violation {
	violations, uids := Live(events).Unsettled(), map[string]model.Names{}
	for _, event := range events {
		uids[event.Name] = uids[event.Name].With(event.Object.UID)
	}
	for i, violation := range violations {
		isRequired := violation.Property == Replicas || violation.Property == Rollout || violation.Property == Endpoints
		if isRequired && len(uids[violation.Name].List()) > 1 {
			violations[i].Property, violations[i].Rule = Recreated, Recreated.Rule
		}
	}
	return violations
}

// Delayed reports whether something is left to do after some events, and all of it for objects that take the name of a deleted one.
func Delayed(events []history.Event) bool {
	left := checkQuiet(events)
	return len(left) > 0 && !slices.ContainsFunc(left, func(violation history.Violation) bool { return violation.Property != Recreated })
}

// isStopped reports whether the last rollout of a Deployment met an injected refusal of an update of one of its ReplicaSets. The controller takes that
// for done (reconcileOldReplicaSets in pkg/controller/deployment/rolling.go).
func isStopped(h *history.History, name string) bool {
	last, exists := Live(h.Workloads[:h.Quiet])[name]
	if !exists || last.Workload.Kind != deployment {
		return false
	}
	var refused []string
	began, isLast := last.At, true
	for _, event := range slices.Backward(h.Workloads[:h.Quiet]) {
		switch {
		case event.Object.UID == last.Object.UID:
			isLast = isLast && event.Workload.Template == last.Workload.Template && event.Workload.Replicas == last.Workload.Replicas
			if isLast {
				began = event.At
			}
		case event.Workload.Kind == replicaSet && event.Workload.Controller == last.Object.UID:
			refused = append(refused, "UPDATE replicasets/"+bare(event.Name))
		}
	}
	return slices.ContainsFunc(h.Faults, func(fault history.Fault) bool {
		return fault.Name == "refuse" && fault.At >= began-delivery && slices.Contains(refused, fault.Write)
	})
}

// delivery is how much later a watch of the run may deliver an event than that of a controller.
const delivery = time.Second

// Check returns the promises that a history of workloads breaks.
func Check(h *history.History) []history.Violation {
	violations := slices.DeleteFunc(checkQuiet(h.Workloads[:h.Quiet]), func(violation history.Violation) bool {
		switch violation.Property {
		case Endpoints: // the controller tries again after up to 1000 s (maxSyncBackOff in pkg/controller/endpointslice)
			return h.Interrupted
		case Replicas, Rollout:
			return h.Interrupted && wasMissed(h.Workloads[:h.Quiet], violation.Name)
		}
		return false
	})
	for i, violation := range violations {
		explained := violation.Property
		switch violation.Property {
		case Replicas, Rollout:
			if isStopped(h, violation.Name) {
				explained = Retried
			}
		case Collected, Completed:
			if h.Interrupted && ownership.CollectorMissed(h.Workloads[:h.Quiet], violation.Name) {
				explained = ownership.Recreated
			}
		}
		violations[i].Property, violations[i].Rule = explained, explained.Rule
	}
	if !h.Comparable() {
		return violations
	}
	r := recordOf(h)
	for _, uid := range r.sorted() {
		known := r.lives[uid]
		switch known.first().Workload.Kind {
		case pod:
			violations = append(violations, r.checkRemoval(uid, known)...)
			violations = append(violations, r.checkPod(uid, known)...)
			violations = append(violations, r.checkEviction(uid, known)...)
		case budget:
			violations = append(violations, checkCounts(known)...)
			violations = append(violations, r.checkDependent(uid, known)...)
		case namespace:
		default:
			violations = append(violations, r.checkDependent(uid, known)...)
		}
		violations = append(violations, r.checkOwner(uid, known, Blocked, model.Foreground, model.PolicyForeground)...)
		violations = append(violations, r.checkOwner(uid, known, Orphaned, model.Orphan, model.PolicyOrphan)...)
	}
	return append(violations, r.checkSurplus()...)
}

// wasMissed reports whether a pod of a workload has come and gone. When the API server was restarted, the controller may have seen neither: it then
// expects the pod for five minutes (ExpectationsTimeout in pkg/controller/controller_utils.go).
func wasMissed(events []history.Event, name string) bool {
	controllers := []string{Live(events)[name].Object.UID}
	for _, event := range events {
		if event.Workload.Kind == replicaSet && event.Workload.Controller == controllers[0] {
			controllers = append(controllers, event.Object.UID)
		}
	}
	return slices.ContainsFunc(events, func(event history.Event) bool {
		isGoing := event.Type == history.Deleted || event.Object.Terminating
		return isGoing && event.Workload.Kind == pod && slices.Contains(controllers, event.Workload.Controller)
	})
}

// unsupervised is how long a pod may be without its node before the pod garbage collector may delete it. It waits 40 s (quarantineTime in
// pkg/controller/podgc).
const unsupervised = 30 * time.Second

// checkRemoval checks that a pod with a node was removed after its termination was confirmed, or after its end.
func (r *record) checkRemoval(uid string, known *life) []history.Violation {
	removal := known.last()
	last := known.before(len(known.events) - 1)
	switch {
	case removal.Type != history.Deleted, removal.Workload.Node == "", removal.Workload.Finished, last.Workload.Finished:
		return nil
	case r.Unsupervised && removal.At-known.first().At >= unsupervised:
		return nil
	case r.isDeleted(uid, removal.At, func(request history.Request) bool {
		return request.Operation.Grace != nil && *request.Operation.Grace == 0
	}):
		return nil
	}
	return []history.Violation{broken(Confirmed, known.name, "%s was removed from node %s, and no request confirmed its termination: %s",
		known.name, removal.Workload.Node, last.Object)}
}

// checkDependent checks that the garbage collector deleted an object only if no owner was left. Other controllers delete the old ReplicaSets of a
// Deployment, EndpointSlices, and the old revisions of a workload.
func (r *record) checkDependent(uid string, known *life) []history.Violation {
	at := known.deletion()
	kind := known.first().Workload.Kind
	if at < 0 || kind == endpointSlice || kind == "ControllerRevision" || r.isDeleted(uid, known.events[at].At, always) || r.wasAwaited(known, at) {
		return nil
	}
	before, version := known.before(at), versionOf(known.events[at])
	owners := model.OwnersOf(before.Object.Owners)
	isRetained := kind == claim && r.isRetained(before)
	isKept := isRetained || len(owners) == 0 && !r.wasCollected(known, at) || r.hasSolid(owners, version)
	property := DependentsKept
	switch isOld := kind == replicaSet && before.Workload.Controller != "" && before.Workload.Replicas == 0; {
	case !isKept || isOld:
		return nil
	case len(owners) > 0 && !isRetained && r.wasDue(known, at):
		property = ownership.Latest
	case kind == claim:
		property = ClaimsKept
	}
	return []history.Violation{broken(property, known.name, "%s was deleted, and no client had deleted it: %s", known.name, before.Object)}
}

// isRetained reports whether a claim is that of a StatefulSet which keeps its claims.
func (r *record) isRetained(event history.Event) bool {
	for _, known := range r.lives {
		if first := known.first(); first.Workload.Kind == statefulSet && first.Workload.Retains && first.Workload.Group == event.Workload.Group {
			return true
		}
	}
	return false
}

// isSolid reports whether an owner exists at a resourceVersion, and has never waited for its dependents.
func (r *record) isSolid(uid string, version uint64) bool {
	known, ok := r.lives[uid]
	if !ok {
		return false
	}
	_, exists := known.at(version)
	return exists && !hasWaited(known, version)
}

// hasSolid reports whether one of these owners is solid.
func (r *record) hasSolid(owners []model.Owner, version uint64) bool {
	return slices.ContainsFunc(owners, func(owner model.Owner) bool { return r.isSolid(owner.UID, version) })
}

// wasDue reports whether the owners that an object had until shortly before an event of it are gone, so that the garbage collector may have decided to
// delete it before it got others.
func (r *record) wasDue(object *life, at int) bool {
	deletion := object.events[at]
	for i, event := range object.events[:max(at-1, 0)] {
		owners := model.OwnersOf(event.Object.Owners)
		if len(owners) > 0 && !r.hasSolid(owners, versionOf(deletion)) && deletion.At-object.events[i+1].At <= r.lag() {
			return true
		}
	}
	return false
}

// hasWaited reports whether an owner has waited for its dependents in foreground deletion by a resourceVersion. Another policy may have ended that,
// and orphaned a dependent, after the garbage collector had decided to delete it.
func hasWaited(owner *life, version uint64) bool {
	return slices.ContainsFunc(owner.until(version), func(event history.Event) bool {
		return event.Object.Terminating && event.Object.Finalizers.Has(model.Foreground)
	})
}

// wasAwaited reports whether all owners that an object once had, before an event of it, have waited for it by then.
func (r *record) wasAwaited(object *life, at int) bool {
	version := versionOf(object.events[at])
	return slices.ContainsFunc(object.events[:at], func(event history.Event) bool {
		owners := model.OwnersOf(event.Object.Owners)
		return len(owners) > 0 && !slices.ContainsFunc(owners, func(owner model.Owner) bool {
			known, ok := r.lives[owner.UID]
			return !ok || !hasWaited(known, version)
		})
	})
}

// wasCollected reports whether an owner that an object once had was gone before an event, and a client had deleted the owner with another policy than
// Orphan. A delete with that one at the same moment may orphan the object after the garbage collector has decided to delete it.
func (r *record) wasCollected(object *life, at int) bool {
	deletion := object.events[at]
	return slices.ContainsFunc(object.events[:at], func(event history.Event) bool {
		return slices.ContainsFunc(model.OwnersOf(event.Object.Owners), func(owner model.Owner) bool {
			known, ok := r.lives[owner.UID]
			if !ok {
				return false
			}
			_, exists := known.at(versionOf(deletion))
			return !exists && r.isDeleted(owner.UID, deletion.At, func(request history.Request) bool {
				return request.Operation.Policy != model.PolicyOrphan
			})
		})
	})
}

// lag is how much later the garbage collector may see an object than one of another kind that was written after it. After a restart of the API server
// it waits up to a minute before it watches a kind again (defaultBackoffMax in the reflector of client-go, with its jitter).
func (r *record) lag() time.Duration {
	if r.Interrupted {
		return time.Minute
	}
	return time.Second
}

// checkOwner checks that an owner which waited for its dependents was not removed while it still had one, by a finalizer that only the garbage
// collector could remove. Another policy of a client also removes it.
func (r *record) checkOwner(uid string, known *life, property *history.Property, finalizer, policy string) []history.Violation {
	waits := slices.IndexFunc(known.events, func(event history.Event) bool {
		return event.Object.Terminating && event.Object.Finalizers.Has(finalizer)
	})
	other := r.isDeleted(uid, known.last().At, func(request history.Request) bool { return request.Operation.Policy != policy })
	if waits < 0 || known.last().Type != history.Deleted || other {
		return nil
	}
	var violations []history.Violation
	for _, dependent := range r.sorted() {
		object := r.lives[dependent]
		if r.refers(object, uid, finalizer == model.Foreground, known.events[waits], known.last()) {
			violations = append(violations, broken(property, known.name, "%s was removed while %s referred to it", known.name, object.name))
		}
	}
	return violations
}

// refers reports whether an object referred to an owner from some time before the owner waited until the owner was removed. The controller of
// EndpointSlices restores a reference that the garbage collector has removed.
func (r *record) refers(object *life, uid string, blocks bool, waits, removal history.Event) bool {
	refers := func(event history.Event) bool {
		return slices.ContainsFunc(model.OwnersOf(event.Object.Owners), func(owner model.Owner) bool { return owner.UID == uid && (owner.Blocks || !blocks) })
	}
	last, exists := object.at(versionOf(removal))
	if !exists || !refers(last) {
		return false
	}
	begun := last
	for _, event := range slices.Backward(object.until(versionOf(removal))) {
		if !refers(event) {
			break
		}
		begun = event
	}
	return begun.At < waits.At-r.lag()
}
