package history

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Uncollected are the names of objects on which the garbage collector must still act: those whose owners are all gone, and those that it
// has not yet released. None of the objects may be held by clients. It will not act on deadlocked objects.
func Uncollected(live map[string]model.Object) []string {
	uids, stuck := map[string]bool{}, deadlocked(slices.Collect(maps.Values(live)))
	for _, object := range live {
		uids[object.UID] = true
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if isAbandoned(live[name], func(uid string) bool { return uids[uid] }) || isUnfinished(live[name]) && !stuck[live[name].UID] {
			names = append(names, name)
		}
	}
	return names
}

// isAbandoned reports whether an object had owners, and none of them exists.
func isAbandoned(object model.Object, exists func(uid string) bool) bool {
	owners := model.OwnersOf(object.Owners)
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(owner model.Owner) bool { return exists(owner.UID) })
}

// isUnfinished reports whether an object is terminating, and the garbage collector must finish that.
func isUnfinished(object model.Object) bool {
	return object.Terminating && (object.Finalizers.Has(model.Foreground) || object.Finalizers.Has(model.Orphan))
}

// deadlocked returns the uids of the objects in foreground deletion that block each other, and of those that they block. The garbage collector
// does not end these deletions.
func deadlocked(objects []model.Object) map[string]bool {
	waiting := map[string]bool{}
	for _, object := range objects {
		if object.Terminating && object.Finalizers.Has(model.Foreground) {
			waiting[object.UID] = true
		}
	}
	for {
		blocked := map[string]bool{}
		for _, object := range objects {
			for _, owner := range model.OwnersOf(object.Owners) {
				if waiting[object.UID] && owner.Blocks && waiting[owner.UID] {
					blocked[owner.UID] = true
				}
			}
		}
		if len(blocked) == len(waiting) {
			return waiting
		}
		waiting = blocked
	}
}

// lifetime is one object from its creation to its removal.
type lifetime struct {
	name     string
	versions []version
}

// removed is the resourceVersion of the object's removal; 0 if it was not removed.
func (l lifetime) removed() uint64 {
	if last := l.versions[len(l.versions)-1]; last.deleted {
		return last.number
	}
	return 0
}

func (l lifetime) existsAt(number uint64) bool {
	return l.versions[0].number <= number && (l.removed() == 0 || l.removed() > number)
}

// deletion is the first version that is terminating, or the removal of an object that never was.
func (l lifetime) deletion() (version, bool) {
	at := slices.IndexFunc(l.versions, func(v version) bool { return v.deleted || v.object.Terminating })
	if at < 0 {
		return version{}, false
	}
	return l.versions[at], true
}

// awaits is the first version that is terminating and has a finalizer of the garbage collector; 0 if there is none.
func (l lifetime) awaits(finalizer string) uint64 {
	for _, version := range l.versions {
		if !version.deleted && version.object.Terminating && version.object.Finalizers.Has(finalizer) {
			return version.number
		}
	}
	return 0
}

// refersThroughout reports whether every version of the object from one resourceVersion to another has a reference.
func (l lifetime) refersThroughout(from, to uint64, isMeant func(model.Owner) bool) bool {
	if !l.existsAt(from) || !l.existsAt(to) {
		return false
	}
	for i, version := range l.versions {
		superseded := i+1 < len(l.versions) && l.versions[i+1].number <= from
		if !superseded && version.number <= to && !slices.ContainsFunc(model.OwnersOf(version.object.Owners), isMeant) {
			return false
		}
	}
	return true
}

// graph are the objects of a history, by uid, and how clients deleted them.
type graph struct {
	lives    map[string]lifetime
	policies map[string][]string
	settled  uint64
	// interrupted reports that the garbage collector may have missed events.
	interrupted bool
	// clusterOwner existed until deleting, when a client first deleted it. Times compare with those at which versions arrived.
	clusterOwner *model.Owner
	deleting     time.Duration
	arrived      map[uint64]time.Duration
}

func (h *History) graphOf(known log) graph {
	g := graph{
		lives: map[string]lifetime{}, policies: map[string][]string{}, settled: number(h.Settled),
		interrupted: h.Interrupted, clusterOwner: h.ClusterOwner, deleting: never, arrived: h.arrivals(),
	}
	for name, versions := range known {
		for _, version := range versions {
			life := g.lives[version.object.UID]
			g.lives[version.object.UID] = lifetime{name, append(life.versions, version)}
		}
	}
	for _, request := range h.Requests {
		if operation := request.Operation; operation.Verb == model.Delete && request.mayHaveSucceeded() {
			g.policies[operation.UID] = append(g.policies[operation.UID], operation.Policy)
			if h.ClusterOwner != nil && operation.UID == h.ClusterOwner.UID {
				g.deleting = min(g.deleting, request.Call)
			}
		}
	}
	return g
}

// arrivals are the times at which a watch first delivered a version, by its resourceVersion.
func (h *History) arrivals() map[uint64]time.Duration {
	arrived := map[uint64]time.Duration{}
	for _, stream := range h.Streams {
		for _, event := range stream.Events {
			version := number(event.Object.ResourceVersion)
			at, known := arrived[version]
			if !known {
				at = never
			}
			arrived[version] = min(at, event.At)
		}
	}
	return arrived
}

// clusterOwnerExists reports whether an owner is the cluster-scoped one, and certainly existed at a resourceVersion.
func (g graph) clusterOwnerExists(owner model.Owner, number uint64) bool {
	at, known := g.arrived[number]
	return known && g.clusterOwner != nil && owner.UID == g.clusterOwner.UID && at < g.deleting
}

func (g graph) exists(uid string, number uint64) bool {
	life, known := g.lives[uid]
	return known && life.existsAt(number)
}

// checkOwnership checks what the garbage collector did.
func (h *History) checkOwnership(known log) []Violation {
	g, violations := h.graphOf(known), []Violation{}
	stuck := deadlocked(g.atSettled())
	for _, uid := range slices.Sorted(maps.Keys(g.lives)) {
		life := g.lives[uid]
		found := func(property *Property, format string, values ...any) {
			violations = append(violations, property.broken(life.name, format, values...))
		}
		g.checkKept(uid, found)
		g.checkSettled(life, stuck[uid], found)
		g.checkRemoval(uid, OwnershipBlocked, model.Foreground, model.PolicyForeground, found)
		g.checkRemoval(uid, OwnershipOrphaned, model.Orphan, model.PolicyOrphan, found)
	}
	return violations
}

// checkKept checks that the garbage collector deletes only what it must. Where it would have had to delete an earlier version of the object,
// it may not have seen the owners that were added since.
func (g graph) checkKept(uid string, found func(*Property, string, ...any)) {
	life := g.lives[uid]
	deletion, deleted := life.deletion()
	if _, byClient := g.policies[uid]; !deleted || byClient || deletion.number > g.settled {
		return
	}
	solid := g.solidOwner(deletion.object, deletion.number)
	if solid == "" {
		return
	}
	property := OwnershipKept
	switch {
	case g.wasDue(life, deletion.number):
		property = OwnershipLatest
	case deletion.deleted && g.replacesHeld(life):
		property = AtomicRemoval
	}
	found(property, "%s was deleted with resourceVersion %d, by no client, and it has %s", life.name, deletion.number, solid)
}

// wasDue reports whether the garbage collector would have had to delete a version of an object before a resourceVersion.
func (g graph) wasDue(life lifetime, number uint64) bool {
	return slices.ContainsFunc(life.versions, func(v version) bool { return v.number < number && g.solidOwner(v.object, number) == "" })
}

// replacesHeld reports whether finalizers held an earlier object of the name. A request that has emptied those may remove this object.
func (g graph) replacesHeld(life lifetime) bool {
	return g.hasOther(life.name, func(earlier lifetime) bool {
		deletion, _ := earlier.deletion()
		return deletion.number < life.versions[0].number && deletion.object.Finalizers != ""
	})
}

// solidOwner describes why the garbage collector must keep an object: an owner that exists at a resourceVersion and did not wait for it in
// foreground deletion before, or that it never had owners. It is empty where the object must be deleted.
func (g graph) solidOwner(object model.Object, number uint64) string {
	owners := model.OwnersOf(object.Owners)
	if len(owners) == 0 {
		return "no owners"
	}
	for _, owner := range owners {
		waits := g.lives[owner.UID].awaits(model.Foreground)
		if g.clusterOwnerExists(owner, number) || g.exists(owner.UID, number) && (waits == 0 || waits >= number) {
			return "the owner " + owner.String()
		}
	}
	return ""
}

// at is the object at a resourceVersion at which it exists.
func (l lifetime) at(number uint64) model.Object {
	last := l.versions[0]
	for _, version := range l.versions {
		if version.number <= number {
			last = version
		}
	}
	return last.object
}

// atSettled returns the objects that exist when the garbage collector had time to finish.
func (g graph) atSettled() []model.Object {
	var objects []model.Object
	for _, life := range g.lives {
		if life.existsAt(g.settled) {
			objects = append(objects, life.at(g.settled))
		}
	}
	return objects
}

// checkSettled checks that nothing is left to the garbage collector when it had time to finish.
func (g graph) checkSettled(life lifetime, isStuck bool, found func(*Property, string, ...any)) {
	if !life.existsAt(g.settled) {
		return
	}
	last, exists := life.at(g.settled), func(uid string) bool { return g.exists(uid, g.settled) }
	switch {
	case isStuck:
		found(OwnershipCycles, "%s is still terminating: %s", life.name, last)
	case (isUnfinished(last) || isAbandoned(last, exists)) && g.hasMissed(life):
		found(OwnershipRecreated, "%s is left to the garbage collector: %s", life.name, last)
	case isUnfinished(last):
		found(OwnershipCompleted, "%s is still terminating: %s", life.name, last)
	case isAbandoned(last, exists):
		found(OwnershipCollected, "%s still exists, but none of its owners does: %s", life.name, last)
	}
}

// CollectorMissed reports whether what is left to the garbage collector to do with an object after some events, in which the API server was restarted,
// may be left because it missed a removal.
func CollectorMissed(events []Event, name string) bool {
	g, uid := graph{lives: map[string]lifetime{}, settled: math.MaxUint64, interrupted: true}, ""
	for _, event := range events {
		life := g.lives[event.Object.UID]
		life.name, life.versions = event.Name, append(life.versions, version{number: number(event.Object.ResourceVersion), object: event.Object, deleted: event.Type == Deleted})
		g.lives[event.Object.UID] = life
		if event.Name == name {
			uid = event.Object.UID
		}
	}
	return g.hasMissed(g.lives[uid])
}

// hasMissed reports whether the garbage collector may have missed a removal, so that it leaves an object: that of one of its owners, or one that its
// deletion waits for.
func (g graph) hasMissed(life lifetime) bool {
	last := life.at(g.settled)
	if isUnfinished(last) {
		return g.awaitsMissed(life)
	}
	return slices.ContainsFunc(model.OwnersOf(last.Owners), func(owner model.Owner) bool { return g.isMissed(g.lives[owner.UID]) })
}

// isMissed reports whether the garbage collector may have missed that an object was removed: its watch was interrupted, and when it began again, another
// object of that name may have existed, which it takes for a change of the first (UpdateFunc in pkg/controller/garbagecollector/graph_builder.go).
func (g graph) isMissed(object lifetime) bool {
	return g.interrupted && len(object.versions) > 0 && object.removed() > 0 && g.hasOther(object.name, func(other lifetime) bool {
		return other.versions[0].number > object.removed()
	})
}

// hasOther reports whether the history has an object of a name that matches.
func (g graph) hasOther(name string, matches func(lifetime) bool) bool {
	for _, other := range g.lives {
		if other.name == name && matches(other) {
			return true
		}
	}
	return false
}

// awaitsMissed reports whether an unfinished deletion cannot end because the garbage collector missed a removal: of an object of the same name whose
// deletion had begun in the same way, so that it does not see this one begin; or of a dependent, which it cannot orphan, or which was terminating and
// blocked this deletion. The deletion may also be blocked by another one that cannot end.
func (g graph) awaitsMissed(life lifetime) bool {
	uid, finalizer := life.versions[0].object.UID, model.Orphan
	isForeground := life.at(g.settled).Finalizers.Has(model.Foreground)
	if isForeground {
		finalizer = model.Foreground
	}
	if g.hasOther(life.name, func(other lifetime) bool { return g.isMissed(other) && other.awaits(finalizer) > 0 }) {
		return true
	}
	isMeant := func(owner model.Owner) bool { return owner.UID == uid && (owner.Blocks || !isForeground) }
	for _, dependent := range g.lives {
		deletion, _ := dependent.deletion()
		if g.isMissed(dependent) && (!isForeground || !deletion.deleted) && dependent.refers(isMeant) {
			return true
		}
		last := dependent.at(g.settled)
		isBlocking := isForeground && dependent.existsAt(g.settled) && isUnfinished(last) && slices.ContainsFunc(model.OwnersOf(last.Owners), isMeant)
		if isBlocking && g.awaitsMissed(dependent) { // deletions that block each other are deadlocked
			return true
		}
	}
	return false
}

// refers reports whether the object has ever had a reference.
func (l lifetime) refers(isMeant func(model.Owner) bool) bool {
	return slices.ContainsFunc(l.versions, func(v version) bool { return slices.ContainsFunc(model.OwnersOf(v.object.Owners), isMeant) })
}

// checkRemoval checks that an owner which waited for its dependents, by a finalizer that only the garbage collector could remove, was not
// removed before a dependent that it had from the beginning of the wait. Another policy of a client also removes the finalizer.
func (g graph) checkRemoval(uid string, property *Property, finalizer, policy string, found func(*Property, string, ...any)) {
	owner := g.lives[uid]
	from, to := owner.awaits(finalizer), owner.removed()
	if to > g.settled || slices.ContainsFunc(g.policies[uid], func(other string) bool { return other != policy }) {
		return
	}
	switch {
	case g.wasDue(owner, to):
		property = OwnershipOverruled
	case g.replacesHeld(owner):
		property = AtomicRemoval
	}
	for _, dependentUID := range slices.Sorted(maps.Keys(g.lives)) {
		dependent := g.lives[dependentUID]
		refers := func(reference model.Owner) bool {
			return reference.UID == uid && (reference.Blocks || finalizer != model.Foreground)
		}
		if dependent.refersThroughout(from, to, refers) {
			found(property, "%s was removed with resourceVersion %d, while %s referred to it", owner.name, to, dependent.name)
		}
	}
}
