package ownership

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
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

// Life is one object from its creation to its removal.
type Life struct {
	// Name is that of the object, and Versions are in the order of their resourceVersions.
	Name     string
	Versions []history.Version
}

// Removed is the resourceVersion of the object's removal; 0 if it was not removed.
func (l Life) Removed() uint64 {
	if last := l.Versions[len(l.Versions)-1]; last.Deleted {
		return last.Number
	}
	return 0
}

// ExistsAt reports whether the object exists at a resourceVersion.
func (l Life) ExistsAt(number uint64) bool {
	return l.Versions[0].Number <= number && (l.Removed() == 0 || l.Removed() > number)
}

// deletion is the first version that is terminating, or the removal of an object that never was.
func (l Life) deletion() (history.Version, bool) {
	at := slices.IndexFunc(l.Versions, func(v history.Version) bool { return v.Deleted || v.Object.Terminating })
	if at < 0 {
		return history.Version{}, false
	}
	return l.Versions[at], true
}

// awaits is the first version that is terminating and has a finalizer of the garbage collector; 0 if there is none.
func (l Life) awaits(finalizer string) uint64 {
	for _, version := range l.Versions {
		if !version.Deleted && version.Object.Terminating && version.Object.Finalizers.Has(finalizer) {
			return version.Number
		}
	}
	return 0
}

// refersThroughout reports whether every version of the object from one resourceVersion to another has a reference.
func (l Life) refersThroughout(from, to uint64, isMeant func(model.Owner) bool) bool {
	if !l.ExistsAt(from) || !l.ExistsAt(to) {
		return false
	}
	for i, version := range l.Versions {
		superseded := i+1 < len(l.Versions) && l.Versions[i+1].Number <= from
		if !superseded && version.Number <= to && !slices.ContainsFunc(model.OwnersOf(version.Object.Owners), isMeant) {
			return false
		}
	}
	return true
}

// Graph are the objects of a history, and how clients deleted them.
type Graph struct {
	// Lives are the objects, by uid.
	Lives    map[string]Life
	policies map[string][]string
	settled  uint64
	// interrupted reports that the garbage collector may have missed events.
	interrupted bool
	// clusterOwner existed until deleting, when a client first deleted it. Times compare with those at which versions arrived.
	clusterOwner *model.Owner
	deleting     time.Duration
	// Arrived are the times at which a watch first delivered a version, by its resourceVersion.
	Arrived map[uint64]time.Duration
}

// Of returns the objects of a history. Known are all versions of each object.
func Of(h *history.History, known history.Log) Graph {
	g := Graph{
		Lives: map[string]Life{}, policies: map[string][]string{}, settled: history.Number(h.Settled),
		interrupted: h.Interrupted, clusterOwner: h.ClusterOwner, deleting: history.Never, Arrived: arrivals(h),
	}
	for name, versions := range known {
		for _, version := range versions {
			life := g.Lives[version.Object.UID]
			g.Lives[version.Object.UID] = Life{name, append(life.Versions, version)}
		}
	}
	for _, request := range h.Requests {
		if operation := request.Operation; operation.Verb == model.Delete && request.MayHaveSucceeded() {
			g.policies[operation.UID] = append(g.policies[operation.UID], operation.Policy)
			if h.ClusterOwner != nil && operation.UID == h.ClusterOwner.UID {
				g.deleting = min(g.deleting, request.Call)
			}
		}
	}
	return g
}

// arrivals are the times at which a watch first delivered a version, by its resourceVersion.
func arrivals(h *history.History) map[uint64]time.Duration {
	arrived := map[uint64]time.Duration{}
	for _, stream := range h.Streams {
		for _, event := range stream.Events {
			version := history.Number(event.Object.ResourceVersion)
			at, known := arrived[version]
			if !known {
				at = history.Never
			}
			arrived[version] = min(at, event.At)
		}
	}
	return arrived
}

// clusterOwnerExists reports whether an owner is the cluster-scoped one, and certainly existed at a resourceVersion.
func (g Graph) clusterOwnerExists(owner model.Owner, number uint64) bool {
	at, known := g.Arrived[number]
	return known && g.clusterOwner != nil && owner.UID == g.clusterOwner.UID && at < g.deleting
}

func (g Graph) exists(uid string, number uint64) bool {
	life, known := g.Lives[uid]
	return known && life.ExistsAt(number)
}

// Check returns what the garbage collector did against its promises. Known are all versions of each object.
func Check(h *history.History, known history.Log) []history.Violation {
	g, violations := Of(h, known), []history.Violation{}
	stuck := deadlocked(g.atSettled())
	for _, uid := range slices.Sorted(maps.Keys(g.Lives)) {
		life := g.Lives[uid]
		found := func(property *history.Property, format string, values ...any) {
			violations = append(violations, property.Broken(life.Name, format, values...))
		}
		g.checkKept(uid, found)
		g.checkSettled(life, stuck[uid], found)
		g.checkRemoval(uid, Blocked, model.Foreground, model.PolicyForeground, found)
		g.checkRemoval(uid, Orphaned, model.Orphan, model.PolicyOrphan, found)
	}
	return violations
}

// checkKept checks that the garbage collector deletes only what it must. Where it would have had to delete an earlier version of the object,
// it may not have seen the owners that were added since.
func (g Graph) checkKept(uid string, found func(*history.Property, string, ...any)) {
	life := g.Lives[uid]
	deletion, deleted := life.deletion()
	if _, byClient := g.policies[uid]; !deleted || byClient || deletion.Number > g.settled {
		return
	}
	solid := g.solidOwner(deletion.Object, deletion.Number)
	if solid == "" {
		return
	}
	property := Kept
	switch {
	case g.wasDue(life, deletion.Number):
		property = Latest
	case deletion.Deleted && g.replacesHeld(life):
		property = history.AtomicRemoval
	}
	found(property, "%s was deleted with resourceVersion %d, by no client, and it has %s", life.Name, deletion.Number, solid)
}

// wasDue reports whether the garbage collector would have had to delete a version of an object before a resourceVersion.
func (g Graph) wasDue(life Life, number uint64) bool {
	return slices.ContainsFunc(life.Versions, func(v history.Version) bool { return v.Number < number && g.solidOwner(v.Object, number) == "" })
}

// replacesHeld reports whether finalizers held an earlier object of the name. A request that has emptied those may remove this object.
func (g Graph) replacesHeld(life Life) bool {
	return g.hasOther(life.Name, func(earlier Life) bool {
		deletion, _ := earlier.deletion()
		return deletion.Number < life.Versions[0].Number && deletion.Object.Finalizers != ""
	})
}

// solidOwner describes why the garbage collector must keep an object: an owner that exists at a resourceVersion and did not wait for it in
// foreground deletion before, or that it never had owners. It is empty where the object must be deleted.
func (g Graph) solidOwner(object model.Object, number uint64) string {
	owners := model.OwnersOf(object.Owners)
	if len(owners) == 0 {
		return "no owners"
	}
	for _, owner := range owners {
		waits := g.Lives[owner.UID].awaits(model.Foreground)
		if g.clusterOwnerExists(owner, number) || g.exists(owner.UID, number) && (waits == 0 || waits >= number) {
			return "the owner " + owner.String()
		}
	}
	return ""
}

// At is the object at a resourceVersion at which it exists.
func (l Life) At(number uint64) model.Object {
	last := l.Versions[0]
	for _, version := range l.Versions {
		if version.Number <= number {
			last = version
		}
	}
	return last.Object
}

// atSettled returns the objects that exist when the garbage collector had time to finish.
func (g Graph) atSettled() []model.Object {
	var objects []model.Object
	for _, life := range g.Lives {
		if life.ExistsAt(g.settled) {
			objects = append(objects, life.At(g.settled))
		}
	}
	return objects
}

// checkSettled checks that nothing is left to the garbage collector when it had time to finish.
func (g Graph) checkSettled(life Life, isStuck bool, found func(*history.Property, string, ...any)) {
	if !life.ExistsAt(g.settled) {
		return
	}
	last, exists := life.At(g.settled), func(uid string) bool { return g.exists(uid, g.settled) }
	switch {
	case isStuck:
		found(Cycles, "%s is still terminating: %s", life.Name, last)
	case (isUnfinished(last) || isAbandoned(last, exists)) && g.hasMissed(life):
		found(Recreated, "%s is left to the garbage collector: %s", life.Name, last)
	case isUnfinished(last):
		found(Completed, "%s is still terminating: %s", life.Name, last)
	case isAbandoned(last, exists):
		found(Collected, "%s still exists, but none of its owners does: %s", life.Name, last)
	}
}

// CollectorMissed reports whether what is left to the garbage collector to do with an object after some events, in which the API server was restarted,
// may be left because it missed a removal.
func CollectorMissed(events []history.Event, name string) bool {
	g, uid := Graph{Lives: map[string]Life{}, settled: math.MaxUint64, interrupted: true}, ""
	for _, event := range events {
		life := g.Lives[event.Object.UID]
		life.Name, life.Versions = event.Name, append(life.Versions, history.Version{Number: history.Number(event.Object.ResourceVersion), Object: event.Object, Deleted: event.Type == history.Deleted})
		g.Lives[event.Object.UID] = life
		if event.Name == name {
			uid = event.Object.UID
		}
	}
	return g.hasMissed(g.Lives[uid])
}

// hasMissed reports whether the garbage collector may have missed a removal, so that it leaves an object: that of one of its owners, or one that its
// deletion waits for.
func (g Graph) hasMissed(life Life) bool {
	last := life.At(g.settled)
	if isUnfinished(last) {
		return g.awaitsMissed(life)
	}
	return slices.ContainsFunc(model.OwnersOf(last.Owners), func(owner model.Owner) bool { return g.IsMissed(g.Lives[owner.UID]) })
}

// IsMissed reports whether the garbage collector may have missed that an object was removed: its watch was interrupted, and when it began again, another
// object of that name may have existed, which it takes for a change of the first (UpdateFunc in pkg/controller/garbagecollector/graph_builder.go).
func (g Graph) IsMissed(object Life) bool {
	return g.interrupted && len(object.Versions) > 0 && object.Removed() > 0 && g.hasOther(object.Name, func(other Life) bool {
		return other.Versions[0].Number > object.Removed()
	})
}

// hasOther reports whether the history has an object of a name that matches.
func (g Graph) hasOther(name string, matches func(Life) bool) bool {
	for _, other := range g.Lives {
		if other.Name == name && matches(other) {
			return true
		}
	}
	return false
}

// awaitsMissed reports whether an unfinished deletion cannot end because the garbage collector missed a removal: of an object of the same name whose
// deletion had begun in the same way, so that it does not see this one begin; or of a dependent, which it cannot orphan, or which was terminating and
// blocked this deletion. The deletion may also be blocked by another one that cannot end.
func (g Graph) awaitsMissed(life Life) bool {
	uid, finalizer := life.Versions[0].Object.UID, model.Orphan
	isForeground := life.At(g.settled).Finalizers.Has(model.Foreground)
	if isForeground {
		finalizer = model.Foreground
	}
	if g.hasOther(life.Name, func(other Life) bool { return g.IsMissed(other) && other.awaits(finalizer) > 0 }) {
		return true
	}
	isMeant := func(owner model.Owner) bool { return owner.UID == uid && (owner.Blocks || !isForeground) }
	for _, dependent := range g.Lives {
		deletion, _ := dependent.deletion()
		if g.IsMissed(dependent) && (!isForeground || !deletion.Deleted) && dependent.refers(isMeant) {
			return true
		}
		last := dependent.At(g.settled)
		isBlocking := isForeground && dependent.ExistsAt(g.settled) && isUnfinished(last) && slices.ContainsFunc(model.OwnersOf(last.Owners), isMeant)
		if isBlocking && g.awaitsMissed(dependent) { // deletions that block each other are deadlocked
			return true
		}
	}
	return false
}

// refers reports whether the object has ever had a reference.
func (l Life) refers(isMeant func(model.Owner) bool) bool {
	return slices.ContainsFunc(l.Versions, func(v history.Version) bool { return slices.ContainsFunc(model.OwnersOf(v.Object.Owners), isMeant) })
}

// checkRemoval checks that an owner which waited for its dependents, by a finalizer that only the garbage collector could remove, was not
// removed before a dependent that it had from the beginning of the wait. Another policy of a client also removes the finalizer.
func (g Graph) checkRemoval(uid string, property *history.Property, finalizer, policy string, found func(*history.Property, string, ...any)) {
	owner := g.Lives[uid]
	from, to := owner.awaits(finalizer), owner.Removed()
	if to > g.settled || slices.ContainsFunc(g.policies[uid], func(other string) bool { return other != policy }) {
		return
	}
	switch {
	case g.wasDue(owner, to):
		property = Overruled
	case g.replacesHeld(owner):
		property = history.AtomicRemoval
	}
	for _, dependentUID := range slices.Sorted(maps.Keys(g.Lives)) {
		dependent := g.Lives[dependentUID]
		refers := func(reference model.Owner) bool {
			return reference.UID == uid && (reference.Blocks || finalizer != model.Foreground)
		}
		if dependent.refersThroughout(from, to, refers) {
			found(property, "%s was removed with resourceVersion %d, while %s referred to it", owner.Name, to, dependent.Name)
		}
	}
}
