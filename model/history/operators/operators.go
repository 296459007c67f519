package operators

import (
	"maps"
	"slices"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/namespaces"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
)

// ownerOf is the uid of the owner that a child names for its parent; empty if it names none.
func ownerOf(c history.Child) string {
	for _, owner := range model.OwnersOf(c.Object.Owners) {
		if owner.Name == c.Parent {
			return owner.UID
		}
	}
	return ""
}

// living are the children that exist after these events, by uid.
func living(events []history.Child) map[string]history.Child {
	found := map[string]history.Child{}
	for _, child := range events {
		if child.Type == history.Deleted {
			delete(found, child.Object.UID)
		} else {
			found[child.Object.UID] = child
		}
	}
	return found
}

// Unfinished is what an operator and the garbage collector still have to do for objects, by name, whose children are those of the history: each is a
// violation after the time for that.
func Unfinished(h *history.History, objects map[string]model.Object) []history.Violation {
	violations := []history.Violation{}
	made := map[string]map[string]int{}
	children := living(h.Operated.Children)
	for _, uid := range slices.Sorted(maps.Keys(children)) {
		child := children[uid]
		parent, exists := objects[child.Parent]
		owner := ownerOf(child)
		switch {
		case exists && (owner == "" || owner == parent.UID):
			if made[child.Parent] == nil {
				made[child.Parent] = map[string]int{}
			}
			made[child.Parent][child.Kind()]++
		case child.Object.Terminating, owner == "" && isOrphaned(h, child.Parent):
		default:
			property := Children
			if isMissed(h, owner) {
				property = ownership.Recreated
			}
			violations = append(violations, property.Broken(child.Parent, "%s still exists, and %s does not: %s", child.Name, child.Parent, child.Object))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		violations = append(violations, unserved(h, name, objects[name], made[name])...)
	}
	return violations
}

// isMissed reports whether the garbage collector may have missed that an object was removed.
func isMissed(h *history.History, uid string) bool {
	if !h.Interrupted {
		return false
	}
	known, _ := history.LogOf(h.Sightings())
	g := ownership.Of(h, known)
	return g.IsMissed(g.Lives[uid])
}

// unserved is what an operator still has to do for one object, which has so many children of each kind.
func unserved(h *history.History, name string, object model.Object, made map[string]int) []history.Violation {
	o := h.Operated
	added := object.Finalizers.Without(object.Finalizers.Without(o.Finalizers.List()...).List()...)
	home := namespaces.Of(h)[h.Homes[name]]
	switch {
	case home != nil && home.Requested != history.Never:
		if model.Own(object.Finalizers) != "" {
			return nil
		}
		return []history.Violation{Namespace.Broken(name, "%s still exists in its terminating namespace: %s", name, object)}
	case object.Terminating && added != "":
		return []history.Violation{Released.Broken(name, "%s is terminating and still has %s: %s", name, added, object)}
	case object.Terminating:
		return nil
	}
	property := Served
	if IsDisturbed(h, name) {
		property = Restored
	}
	for _, kind := range slices.Sorted(maps.Keys(o.Kinds)) {
		if made[kind] < o.Kinds[kind] {
			return []history.Violation{property.Broken(name, "%s has %d of the %d children of kind %s that the operator creates for an object: %s", name, made[kind],
				o.Kinds[kind], kind, object)}
		}
	}
	if added != o.Finalizers {
		return []history.Violation{Served.Broken(name, "%s lacks the finalizers %s: %s", name, o.Finalizers.Without(added.List()...), object)}
	}
	return nil
}

// isOrphaned reports whether a client may have orphaned the children of an object of a name.
func isOrphaned(h *history.History, name string) bool {
	return slices.ContainsFunc(h.Requests, func(request history.Request) bool {
		return request.Name == name && request.Operation.Policy == model.PolicyOrphan && request.MayHaveSucceeded()
	})
}

// IsDisturbed reports whether a client may have deleted children of an object of a name.
func IsDisturbed(h *history.History, name string) bool {
	return slices.ContainsFunc(h.Requests, func(request history.Request) bool {
		return request.Operation.Verb == model.Delete && h.ParentOf(request.Name) == name
	})
}

// Check returns what an operator did against its promises. Known are all versions of each object.
func Check(h *history.History, known history.Log) []history.Violation {
	g, violations := ownership.Of(h, known), []history.Violation{}
	for _, uid := range slices.Sorted(maps.Keys(g.Lives)) {
		check := operatorCheck{h, g.Lives[uid], nil}
		check.checkFields()
		check.checkFinalizers(g)
		if h.Operated.Ordered && h.Operated.Finalizers != "" && !isLost(h, g, check.life) {
			check.checkChildren(g)
		}
		check.checkOrigin(g)
		violations = append(violations, check.found...)
	}
	for _, moment := range h.Operated.Quiet {
		violations = append(violations, checkQuiet(h, g, moment)...)
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces.Of(h))) {
		if n := namespaces.Of(h)[name]; n.Gone == history.Never && n.Terminating != history.Never && len(h.Unseen) == 0 {
			violations = append(violations, Namespace.Broken(name, "%s is still terminating, although nothing in it is held", name))
		}
	}
	return slices.DeleteFunc(violations, func(v history.Violation) bool { return v.Property == Namespace && isHeldByRun(h, g, v.Name) })
}

// isHeldByRun reports whether an object, or one in a namespace, still has a finalizer of the run.
func isHeldByRun(h *history.History, g ownership.Graph, name string) bool {
	for _, life := range g.Lives {
		last := life.Versions[len(life.Versions)-1]
		if (life.Name == name || h.Homes[life.Name] == name) && !last.Deleted && model.Own(last.Object.Finalizers) != "" {
			return true
		}
	}
	return false
}

// checkQuiet checks that nothing is left to the operator at a moment at which it had time to finish.
func checkQuiet(h *history.History, g ownership.Graph, moment history.Moment) []history.Violation {
	at, objects := history.Number(moment.Version), map[string]model.Object{}
	for _, life := range g.Lives {
		if life.ExistsAt(at) {
			objects[life.Name] = life.At(at)
		}
	}
	operated := *h.Operated
	operated.Children = operated.Children[:min(moment.Children, len(operated.Children))]
	operated.Children = slices.DeleteFunc(slices.Clone(operated.Children), func(child history.Child) bool { return !slices.Contains(h.Names, child.Parent) })
	then := *h
	then.Operated = &operated
	return slices.DeleteFunc(Unfinished(&then, objects), func(v history.Violation) bool {
		return v.Property == Children && hasLost(h, g, v.Name)
	})
}

// operatorCheck checks one object.
type operatorCheck struct {
	*history.History
	life  ownership.Life
	found []history.Violation
}

func (c *operatorCheck) broken(property *history.Property, format string, values ...any) {
	c.found = append(c.found, property.Broken(c.life.Name, format, values...))
}

// steps are the changes of the object, each from one version to the next; the last one may be its end.
func (c *operatorCheck) steps(do func(before, after history.Version)) {
	for i := 1; i < len(c.life.Versions); i++ {
		do(c.life.Versions[i-1], c.life.Versions[i])
	}
}

// checkFields checks that the annotation of clients stays. No two writes have the same value, so that one which comes back is a fault.
func (c *operatorCheck) checkFields() {
	before := map[string]bool{}
	c.steps(func(from, to history.Version) {
		before[from.Object.Value] = true
		switch value := to.Object.Value; {
		case to.Deleted || value == from.Object.Value:
		case value == "", before[value]:
			c.broken(Fields, "the annotation of %s was %q, and no client had changed it: %s", c.life.Name, from.Object.Value, to.Object)
		}
	})
}

// BlameStrays replaces what objects without the labels of the run break: the watches of the run no longer select them.
func BlameStrays(h *history.History, violations []history.Violation) []history.Violation {
	if h.Operated == nil {
		return violations
	}
	for _, name := range h.Names {
		if h.IsStray(name) {
			violations = slices.DeleteFunc(violations, func(v history.Violation) bool { return v.Name == name })
			violations = append(violations, Fields.Broken(name, "%s lacks the labels of the run, and no client had removed them", name))
		}
	}
	return violations
}

// checkFinalizers checks that clients have removed their finalizers, each with a version, and that none came back.
func (c *operatorCheck) checkFinalizers(g ownership.Graph) {
	c.steps(func(from, to history.Version) {
		left := model.Own(to.Object.Finalizers)
		if to.Deleted {
			left = ""
		}
		switch {
		case to.Deleted && isLost(c.History, g, c.life):
			c.broken(history.AtomicRemoval, "%s was removed with the finalizers %q, which were added while a delete removed it", c.life.Name, from.Object.Finalizers)
			return
		case left == model.Own(from.Object.Finalizers), c.isWritten(from, left, g, to):
			return
		case to.Deleted && slices.ContainsFunc(c.life.Versions, func(v history.Version) bool { return c.isWritten(v, left, g, to) }):
			c.broken(history.AtomicRemoval, "%s was removed by a write over an earlier version than %s", c.life.Name, from.Object)
			return
		}
		c.broken(Finalizers, "%s had the finalizers %q of clients and then %q, and no client had written that: %s", c.life.Name,
			model.Own(from.Object.Finalizers), left, to.Object)
	})
}

// isLost reports whether an object was removed in spite of finalizers: a delete has found none, and they were added before it removed the object. Such
// a delete is answered without the object, even if another one has marked it as terminating. A sound operator creates children then, and does not learn
// that it must delete them.
func isLost(h *history.History, g ownership.Graph, life ownership.Life) bool {
	if life.Removed() == 0 {
		return false
	}
	before := life.At(life.Removed() - 1)
	if before.Finalizers == "" || !before.Terminating {
		return before.Finalizers != ""
	}
	created, held := life.Versions[0], life.Versions[slices.IndexFunc(life.Versions, func(v history.Version) bool { return v.Object.Finalizers != "" })]
	return slices.ContainsFunc(h.Requests, func(request history.Request) bool {
		operation := request.Operation
		return operation.Verb == model.Delete && !operation.DryRun && request.Name == life.Name && request.MayHaveSucceeded() && request.Outcome.Object == nil &&
			(operation.UID == created.Object.UID || operation.UID == "" && request.Return >= g.Arrived[created.Number]) && request.Call <= g.Arrived[held.Number]
	})
}

// hasLost reports whether an object of a name was removed in spite of finalizers.
func hasLost(h *history.History, g ownership.Graph, name string) bool {
	for _, life := range g.Lives {
		if life.Name == name && isLost(h, g, life) {
			return true
		}
	}
	return false
}

// isWritten reports whether a client may have written its finalizers.
func (c *operatorCheck) isWritten(from history.Version, left model.Names, g ownership.Graph, to history.Version) bool {
	return slices.ContainsFunc(c.Requests, func(request history.Request) bool {
		operation := request.Operation
		if request.Name != c.life.Name || operation.Verb == model.Create || operation.Change.Finalizers == nil || model.Own(*operation.Change.Finalizers) != left || !request.MayHaveSucceeded() {
			return false
		}
		return operation.ResourceVersion == from.Object.ResourceVersion || operation.ResourceVersion == "" && request.Call <= g.Arrived[to.Number]
	})
}

// finalized is the first resourceVersion with a finalizer of the operator, and released the first after that without one of a terminating object or
// its end; 0 if there is none.
func (c *operatorCheck) finalized() (finalized, released uint64) {
	c.steps(func(from, _ history.Version) {
		if finalized == 0 && c.isFinalized(from) {
			finalized = from.Number
		}
	})
	if last := c.life.Versions[len(c.life.Versions)-1]; finalized == 0 && c.isFinalized(last) {
		finalized = last.Number
	}
	c.steps(func(_, to history.Version) {
		if released == 0 && finalized > 0 && to.Number > finalized && (to.Deleted || to.Object.Terminating && !c.isFinalized(to)) {
			released = to.Number
		}
	})
	return finalized, released
}

func (c *operatorCheck) isFinalized(version history.Version) bool {
	return !version.Deleted && slices.ContainsFunc(c.Operated.Finalizers.List(), version.Object.Finalizers.Has)
}

// checkChildren checks that children are created after the finalizer, and never after its removal, and that those without an owner are gone before
// that.
func (c *operatorCheck) checkChildren(g ownership.Graph) {
	finalized, released := c.finalized()
	for _, child := range c.children(g) {
		created, first := history.Number(child[0].Object.ResourceVersion), child[0]
		switch {
		case first.Type != history.Added:
		case finalized == 0 || created < finalized:
			c.broken(FinalizerFirst, "%s was created with resourceVersion %d, and %s had no finalizer of the operator: %s", first.Name, created,
				c.life.Name, first.Object)
		case released > 0 && created > released:
			c.broken(Stops, "%s was created with resourceVersion %d, after the operator had released %s with %d: %s", first.Name, created, c.life.Name,
				released, first.Object)
		case released > 0 && isUnownedAt(child, released) && !isOrphaned(c.History, c.life.Name):
			c.broken(Children, "%s existed without an owner reference when the operator released %s with resourceVersion %d", first.Name,
				c.life.Name, released)
		}
	}
}

// children are the children of the object, each with its versions: they name it as their owner, or none, and were created before any later object of
// that name. Those without an owner may also be for an object that was lost.
func (c *operatorCheck) children(g ownership.Graph) [][]history.Child {
	var uids []string
	versions := map[string][]history.Child{}
	for _, child := range c.Operated.Children {
		if child.Parent != c.life.Name {
			continue
		}
		if uid := child.Object.UID; versions[uid] == nil {
			uids = append(uids, uid)
		}
		versions[child.Object.UID] = append(versions[child.Object.UID], child)
	}
	var children [][]history.Child
	for _, uid := range uids {
		first, object := versions[uid][0], c.life.Versions[0].Object.UID
		owner := ownerOf(first)
		if owner == "" && !hasLost(c.History, g, c.life.Name) {
			owner = latest(g, c.life.Name, history.Number(first.Object.ResourceVersion))
		}
		if owner == object {
			children = append(children, versions[uid])
		}
	}
	return children
}

// latest is the uid of the last object of a name that was created before a resourceVersion.
func latest(g ownership.Graph, name string, number uint64) (uid string) {
	created := uint64(0)
	for other, life := range g.Lives {
		if first := life.Versions[0].Number; life.Name == name && first < number && first > created {
			uid, created = other, first
		}
	}
	return uid
}

// isUnownedAt reports whether a child exists at a resourceVersion and has never had an owner.
func isUnownedAt(child []history.Child, at uint64) bool {
	exists := false
	for _, version := range child {
		if history.Number(version.Object.ResourceVersion) > at {
			break
		}
		if exists = version.Type != history.Deleted; ownerOf(version) != "" {
			return false
		}
	}
	return exists
}

// checkOrigin checks that a client has created the object. Each create writes another annotation.
func (c *operatorCheck) checkOrigin(g ownership.Graph) {
	first, isCopy := c.life.Versions[0], false
	for _, other := range g.Lives {
		before := other.Versions[0]
		isCopy = isCopy || other.Name == c.life.Name && before.Number < first.Number && before.Object.Value == first.Object.Value
	}
	if isCopy || !slices.ContainsFunc(c.Requests, func(request history.Request) bool {
		return request.Name == c.life.Name && request.Operation.Verb == model.Create && request.MayHaveSucceeded() &&
			request.Operation.Change.Value != nil && *request.Operation.Change.Value == first.Object.Value
	}) {
		c.broken(Stops, "%s was created, and not by a client: %s", c.life.Name, first.Object)
	}
}
