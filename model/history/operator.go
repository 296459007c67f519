package history

import (
	"maps"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Operated is what a round shows of an operator, besides the objects that it reconciles.
type Operated struct {
	// Finalizers are those that it adds to an object, and Kinds counts the children that it creates for one, by kind.
	Finalizers model.Names    `json:"finalizers,omitempty"`
	Kinds      map[string]int `json:"kinds,omitempty"`
	// Ordered reports that the resourceVersions of objects and of children have one order.
	Ordered bool `json:"ordered,omitempty"`
	// Children are what watches have shown of the children, in order of arrival.
	Children []Child `json:"children,omitempty"`
	// Quiet are the moments at which the operator had time to finish.
	Quiet []Moment `json:"quiet,omitempty"`
}

// Child is a version of an object that an operator has created, and Parent the name of the object that it is for. The name of its event is
// KIND/NAME.
type Child struct {
	Event
	Parent string `json:"parent"`
}

// Moment is a resourceVersion of the objects, with the number of the events of children that were there.
type Moment struct {
	Version  string `json:"version"`
	Children int    `json:"children"`
}

// Operator is the name of the operator in requests, which restart it.
const Operator = "the operator"

// owner is the uid of the owner that a child names for its parent; empty if it names none.
func (c Child) owner() string {
	for _, owner := range model.OwnersOf(c.Object.Owners) {
		if owner.Name == c.Parent {
			return owner.UID
		}
	}
	return ""
}

// childrenAt are the children that exist after so many events, by uid.
func (o *Operated) childrenAt(count int) map[string]Child {
	found := map[string]Child{}
	for _, child := range o.Children[:min(count, len(o.Children))] {
		if child.Type == Deleted {
			delete(found, child.Object.UID)
		} else {
			found[child.Object.UID] = child
		}
	}
	return found
}

// Unfinished is what an operator and the garbage collector still have to do for objects, by name, whose children are those of the history: each is a
// violation after the time for that.
func (h *History) Unfinished(objects map[string]model.Object) []Violation {
	o, violations := h.Operated, []Violation{}
	made := map[string]map[string]int{}
	children := o.childrenAt(len(o.Children))
	for _, uid := range slices.Sorted(maps.Keys(children)) {
		child := children[uid]
		parent, exists := objects[child.Parent]
		owner := child.owner()
		switch {
		case exists && (owner == "" || owner == parent.UID):
			if made[child.Parent] == nil {
				made[child.Parent] = map[string]int{}
			}
			made[child.Parent][child.Kind()]++
		case child.Object.Terminating, owner == "" && h.isOrphaned(child.Parent):
		default:
			property := OperatorChildren
			if h.isMissed(owner) {
				property = OwnershipRecreated
			}
			violations = append(violations, property.broken(child.Parent, "%s still exists, and %s does not: %s", child.Name, child.Parent, child.Object))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		violations = append(violations, h.unserved(name, objects[name], made[name])...)
	}
	return violations
}

// isMissed reports whether the garbage collector may have missed that an object was removed.
func (h *History) isMissed(uid string) bool {
	if !h.Interrupted {
		return false
	}
	known, _ := logOf(h.sightings())
	g := h.graphOf(known)
	return g.isMissed(g.lives[uid])
}

// Kind is the kind of the child.
func (c Child) Kind() string {
	kind, _, _ := strings.Cut(c.Name, "/")
	return kind
}

// unserved is what an operator still has to do for one object, which has so many children of each kind.
func (h *History) unserved(name string, object model.Object, made map[string]int) []Violation {
	o := h.Operated
	added := object.Finalizers.Without(object.Finalizers.Without(o.Finalizers.List()...).List()...)
	home := h.namespaces()[h.Homes[name]]
	switch {
	case home != nil && home.requested != never:
		if model.Own(object.Finalizers) != "" {
			return nil
		}
		return []Violation{OperatorNamespace.broken(name, "%s still exists in its terminating namespace: %s", name, object)}
	case object.Terminating && added != "":
		return []Violation{OperatorReleased.broken(name, "%s is terminating and still has %s: %s", name, added, object)}
	case object.Terminating:
		return nil
	}
	property := OperatorServed
	if h.IsDisturbed(name) {
		property = OperatorRestored
	}
	for _, kind := range slices.Sorted(maps.Keys(o.Kinds)) {
		if made[kind] < o.Kinds[kind] {
			return []Violation{property.broken(name, "%s has %d of the %d children of kind %s that the operator creates for an object: %s", name, made[kind],
				o.Kinds[kind], kind, object)}
		}
	}
	if added != o.Finalizers {
		return []Violation{OperatorServed.broken(name, "%s lacks the finalizers %s: %s", name, o.Finalizers.Without(added.List()...), object)}
	}
	return nil
}

// isOrphaned reports whether a client may have orphaned the children of an object of a name.
func (h *History) isOrphaned(name string) bool {
	return slices.ContainsFunc(h.Requests, func(request Request) bool {
		return request.Name == name && request.Operation.Policy == model.PolicyOrphan && request.mayHaveSucceeded()
	})
}

// IsDisturbed reports whether a client may have deleted children of an object of a name.
func (h *History) IsDisturbed(name string) bool {
	return slices.ContainsFunc(h.Requests, func(request Request) bool {
		return request.Operation.Verb == model.Delete && h.parentOf(request.Name) == name
	})
}

// parentOf is the name of the object that a child is for; empty if it is none.
func (h *History) parentOf(child string) string {
	if h.Operated == nil {
		return ""
	}
	at := slices.IndexFunc(h.Operated.Children, func(other Child) bool { return other.Name == child })
	if at < 0 {
		return ""
	}
	return h.Operated.Children[at].Parent
}

// checkOperator checks what an operator did.
func (h *History) checkOperator(known log) []Violation {
	g, violations := h.graphOf(known), []Violation{}
	for _, uid := range slices.Sorted(maps.Keys(g.lives)) {
		check := operatorCheck{h, g.lives[uid], nil}
		check.checkFields()
		check.checkFinalizers(g)
		if h.Operated.Ordered && h.Operated.Finalizers != "" && !h.isLost(g, check.life) {
			check.checkChildren(g)
		}
		check.checkOrigin(g)
		violations = append(violations, check.found...)
	}
	for _, moment := range h.Operated.Quiet {
		violations = append(violations, h.checkQuiet(g, moment)...)
	}
	for _, name := range slices.Sorted(maps.Keys(h.namespaces())) {
		if n := h.namespaces()[name]; n.gone == never && n.terminating != never && len(h.unseen) == 0 {
			violations = append(violations, OperatorNamespace.broken(name, "%s is still terminating, although nothing in it is held", name))
		}
	}
	return slices.DeleteFunc(violations, func(v Violation) bool { return v.Property == OperatorNamespace && h.isHeldByRun(g, v.Name) })
}

// isHeldByRun reports whether an object, or one in a namespace, still has a finalizer of the run.
func (h *History) isHeldByRun(g graph, name string) bool {
	for _, life := range g.lives {
		last := life.versions[len(life.versions)-1]
		if (life.name == name || h.Homes[life.name] == name) && !last.deleted && model.Own(last.object.Finalizers) != "" {
			return true
		}
	}
	return false
}

// checkQuiet checks that nothing is left to the operator at a moment at which it had time to finish.
func (h *History) checkQuiet(g graph, moment Moment) []Violation {
	at, objects := number(moment.Version), map[string]model.Object{}
	for _, life := range g.lives {
		if life.existsAt(at) {
			objects[life.name] = life.at(at)
		}
	}
	operated := *h.Operated
	operated.Children = operated.Children[:min(moment.Children, len(operated.Children))]
	operated.Children = slices.DeleteFunc(slices.Clone(operated.Children), func(child Child) bool { return !slices.Contains(h.Names, child.Parent) })
	then := *h
	then.Operated = &operated
	return slices.DeleteFunc(then.Unfinished(objects), func(v Violation) bool {
		return v.Property == OperatorChildren && h.hasLost(g, v.Name)
	})
}

// operatorCheck checks one object.
type operatorCheck struct {
	*History
	life  lifetime
	found []Violation
}

func (c *operatorCheck) broken(property *Property, format string, values ...any) {
	c.found = append(c.found, property.broken(c.life.name, format, values...))
}

// steps are the changes of the object, each from one version to the next; the last one may be its end.
func (c *operatorCheck) steps(do func(before, after version)) {
	for i := 1; i < len(c.life.versions); i++ {
		do(c.life.versions[i-1], c.life.versions[i])
	}
}

// checkFields checks that the annotation of clients stays. No two writes have the same value, so that one which comes back is a fault.
func (c *operatorCheck) checkFields() {
	before := map[string]bool{}
	c.steps(func(from, to version) {
		before[from.object.Value] = true
		switch value := to.object.Value; {
		case to.deleted || value == from.object.Value:
		case value == "", before[value]:
			c.broken(OperatorFields, "the annotation of %s was %q, and no client had changed it: %s", c.life.name, from.object.Value, to.object)
		}
	})
}

// blameStrays replaces what objects without the labels of the run break: the watches of the run no longer select them.
func (h *History) blameStrays(violations []Violation) []Violation {
	if h.Operated == nil {
		return violations
	}
	for _, name := range h.Names {
		if h.isStray(name) {
			violations = slices.DeleteFunc(violations, func(v Violation) bool { return v.Name == name })
			violations = append(violations, OperatorFields.broken(name, "%s lacks the labels of the run, and no client had removed them", name))
		}
	}
	return violations
}

// checkFinalizers checks that clients have removed their finalizers, each with a version, and that none came back.
func (c *operatorCheck) checkFinalizers(g graph) {
	c.steps(func(from, to version) {
		left := model.Own(to.object.Finalizers)
		if to.deleted {
			left = ""
		}
		switch {
		case to.deleted && c.isLost(g, c.life):
			c.broken(AtomicRemoval, "%s was removed with the finalizers %q, which were added while a delete removed it", c.life.name, from.object.Finalizers)
			return
		case left == model.Own(from.object.Finalizers), c.isWritten(from, left, g, to):
			return
		case to.deleted && slices.ContainsFunc(c.life.versions, func(v version) bool { return c.isWritten(v, left, g, to) }):
			c.broken(AtomicRemoval, "%s was removed by a write over an earlier version than %s", c.life.name, from.object)
			return
		}
		c.broken(OperatorFinalizers, "%s had the finalizers %q of clients and then %q, and no client had written that: %s", c.life.name,
			model.Own(from.object.Finalizers), left, to.object)
	})
}

// isLost reports whether an object was removed in spite of finalizers: a delete has found none, and they were added before it removed the object. Such
// a delete is answered without the object, even if another one has marked it as terminating. A sound operator creates children then, and does not learn
// that it must delete them.
func (h *History) isLost(g graph, life lifetime) bool {
	if life.removed() == 0 {
		return false
	}
	before := life.at(life.removed() - 1)
	if before.Finalizers == "" || !before.Terminating {
		return before.Finalizers != ""
	}
	created, held := life.versions[0], life.versions[slices.IndexFunc(life.versions, func(v version) bool { return v.object.Finalizers != "" })]
	return slices.ContainsFunc(h.Requests, func(request Request) bool {
		operation := request.Operation
		return operation.Verb == model.Delete && !operation.DryRun && request.Name == life.name && request.mayHaveSucceeded() && request.Outcome.Object == nil &&
			(operation.UID == created.object.UID || operation.UID == "" && request.Return >= g.arrived[created.number]) && request.Call <= g.arrived[held.number]
	})
}

// hasLost reports whether an object of a name was removed in spite of finalizers.
func (h *History) hasLost(g graph, name string) bool {
	for _, life := range g.lives {
		if life.name == name && h.isLost(g, life) {
			return true
		}
	}
	return false
}

// isWritten reports whether a client may have written its finalizers.
func (c *operatorCheck) isWritten(from version, left model.Names, g graph, to version) bool {
	return slices.ContainsFunc(c.Requests, func(request Request) bool {
		operation := request.Operation
		if request.Name != c.life.name || operation.Verb == model.Create || operation.Change.Finalizers == nil || model.Own(*operation.Change.Finalizers) != left || !request.mayHaveSucceeded() {
			return false
		}
		return operation.ResourceVersion == from.object.ResourceVersion || operation.ResourceVersion == "" && request.Call <= g.arrived[to.number]
	})
}

// finalized is the first resourceVersion with a finalizer of the operator, and released the first after that without one of a terminating object or
// its end; 0 if there is none.
func (c *operatorCheck) finalized() (finalized, released uint64) {
	c.steps(func(from, _ version) {
		if finalized == 0 && c.isFinalized(from) {
			finalized = from.number
		}
	})
	if last := c.life.versions[len(c.life.versions)-1]; finalized == 0 && c.isFinalized(last) {
		finalized = last.number
	}
	c.steps(func(_, to version) {
		if released == 0 && finalized > 0 && to.number > finalized && (to.deleted || to.object.Terminating && !c.isFinalized(to)) {
			released = to.number
		}
	})
	return finalized, released
}

func (c *operatorCheck) isFinalized(version version) bool {
	return !version.deleted && slices.ContainsFunc(c.Operated.Finalizers.List(), version.object.Finalizers.Has)
}

// checkChildren checks that children are created after the finalizer, and never after its removal, and that those without an owner are gone before
// that.
func (c *operatorCheck) checkChildren(g graph) {
	finalized, released := c.finalized()
	for _, child := range c.children(g) {
		created, first := number(child[0].Object.ResourceVersion), child[0]
		switch {
		case first.Type != Added:
		case finalized == 0 || created < finalized:
			c.broken(OperatorFinalizerFirst, "%s was created with resourceVersion %d, and %s had no finalizer of the operator: %s", first.Name, created,
				c.life.name, first.Object)
		case released > 0 && created > released:
			c.broken(OperatorStops, "%s was created with resourceVersion %d, after the operator had released %s with %d: %s", first.Name, created, c.life.name,
				released, first.Object)
		case released > 0 && isUnownedAt(child, released) && !c.isOrphaned(c.life.name):
			c.broken(OperatorChildren, "%s existed without an owner reference when the operator released %s with resourceVersion %d", first.Name,
				c.life.name, released)
		}
	}
}

// children are the children of the object, each with its versions: they name it as their owner, or none, and were created before any later object of
// that name. Those without an owner may also be for an object that was lost.
func (c *operatorCheck) children(g graph) [][]Child {
	var uids []string
	versions := map[string][]Child{}
	for _, child := range c.Operated.Children {
		if child.Parent != c.life.name {
			continue
		}
		if uid := child.Object.UID; versions[uid] == nil {
			uids = append(uids, uid)
		}
		versions[child.Object.UID] = append(versions[child.Object.UID], child)
	}
	var children [][]Child
	for _, uid := range uids {
		first, object := versions[uid][0], c.life.versions[0].object.UID
		owner := first.owner()
		if owner == "" && !c.hasLost(g, c.life.name) {
			owner = g.latest(c.life.name, number(first.Object.ResourceVersion))
		}
		if owner == object {
			children = append(children, versions[uid])
		}
	}
	return children
}

// latest is the uid of the last object of a name that was created before a resourceVersion.
func (g graph) latest(name string, number uint64) (uid string) {
	created := uint64(0)
	for other, life := range g.lives {
		if first := life.versions[0].number; life.name == name && first < number && first > created {
			uid, created = other, first
		}
	}
	return uid
}

// isUnownedAt reports whether a child exists at a resourceVersion and has never had an owner.
func isUnownedAt(child []Child, at uint64) bool {
	exists := false
	for _, version := range child {
		if number(version.Object.ResourceVersion) > at {
			break
		}
		if exists = version.Type != Deleted; version.owner() != "" {
			return false
		}
	}
	return exists
}

// checkOrigin checks that a client has created the object. Each create writes another annotation.
func (c *operatorCheck) checkOrigin(g graph) {
	first, isCopy := c.life.versions[0], false
	for _, other := range g.lives {
		before := other.versions[0]
		isCopy = isCopy || other.name == c.life.name && before.number < first.number && before.object.Value == first.object.Value
	}
	if isCopy || !slices.ContainsFunc(c.Requests, func(request Request) bool {
		return request.Name == c.life.name && request.Operation.Verb == model.Create && request.mayHaveSucceeded() &&
			request.Operation.Change.Value != nil && *request.Operation.Change.Value == first.object.Value
	}) {
		c.broken(OperatorStops, "%s was created, and not by a client: %s", c.life.name, first.object)
	}
}
