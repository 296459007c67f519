package history

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// never is later than every time of a round.
const never = time.Duration(math.MaxInt64)

// namespace is what a history shows of the deletion of one namespace.
type namespace struct {
	// requested is when a client first sent its delete. From terminating on, it was certain that the namespace was terminating, and from gone on,
	// that it was gone.
	requested, terminating, gone time.Duration
	// last is the last state that was observed.
	last model.Object
}

// namespaces are the namespaces of the round, by name.
func (h *History) namespaces() map[string]*namespace {
	found := map[string]*namespace{}
	for _, name := range h.Homes {
		found[name] = &namespace{requested: never, terminating: never, gone: never}
	}
	for _, event := range h.Namespaces {
		if n := found[event.Name]; n != nil {
			n.observe(event)
		}
	}
	for _, request := range h.Requests {
		if n := found[request.Name]; n != nil {
			n.note(request)
		}
	}
	return found
}

func (n *namespace) observe(event Event) {
	n.last = event.Object
	if event.Object.Terminating {
		n.terminating = min(n.terminating, event.At)
	}
	if event.Type == Deleted {
		n.gone = min(n.gone, event.At)
	}
}

func (n *namespace) note(request Request) {
	deletes := request.Operation.Verb == model.Delete
	switch {
	case request.Outcome.Code == 404:
		n.gone = min(n.gone, request.Return)
	case deletes && request.Outcome.Succeeded():
		n.terminating = min(n.terminating, request.Return)
		fallthrough
	case deletes && request.Outcome.Lost():
		n.requested = min(n.requested, request.Call)
	}
}

// checkNamespaces checks that namespaces are emptied and removed, and that their objects stay until then, or until their finalizers go.
func (h *History) checkNamespaces() []Violation {
	var violations []Violation
	namespaces, residents := h.namespaces(), h.observed()
	for _, uid := range slices.Sorted(maps.Keys(residents)) {
		violations = append(violations, h.checkResident(uid, residents[uid], namespaces[h.Homes[residents[uid].name]])...)
	}
	for _, request := range h.Requests {
		if n := namespaces[h.Homes[request.Name]]; n != nil {
			violations = append(violations, checkAdmission(request, n)...)
		}
	}
	held := map[string]bool{}
	for _, name := range h.unseen {
		held[h.Homes[name]] = true
	}
	for _, object := range residents {
		if object.isHeld() {
			held[h.Homes[object.name]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		if n := namespaces[name]; n.gone == never && n.terminating != never && !held[name] && n.last.Finalizers == "" {
			violations = append(violations, NamespaceCompleted.broken(name, "%s is still terminating, although nothing in it is held", name))
		}
	}
	return violations
}

// checkResident checks why an object was deleted and removed.
func (h *History) checkResident(uid string, object *observed, n *namespace) []Violation {
	kept, held := NamespaceKept, NamespaceHeld
	if object.replaces {
		kept, held = AtomicRemoval, AtomicRemoval
	}
	var violations []Violation
	deletion := slices.IndexFunc(object.events, func(event Event) bool { return event.Object.Terminating || event.Type == Deleted })
	if deletion >= 0 && object.events[deletion].At < n.requested && !h.isDeleted(uid, object.events[deletion].At) {
		violations = append(violations, kept.broken(object.name, "%s was deleted, and no client had deleted it or its namespace", object.name))
	}
	if last := object.last(); object.isGone() && last.Object.Finalizers != "" && !h.isReleased(object) {
		violations = append(violations, held.broken(object.name, "%s was removed with the finalizers %q, and no client had removed them",
			object.name, last.Object.Finalizers))
	}
	return violations
}

// isDeleted reports whether a client had sent a delete of an object by some time.
func (h *History) isDeleted(uid string, by time.Duration) bool {
	return slices.ContainsFunc(h.Requests, func(request Request) bool {
		return request.Operation.Verb == model.Delete && request.Operation.UID == uid && request.Call <= by && request.mayHaveSucceeded()
	})
}

// isReleased reports whether a client may have removed the finalizers of an object. A patch that names no change does that.
func (h *History) isReleased(object *observed) bool {
	return slices.ContainsFunc(h.Requests, func(request Request) bool {
		operation := request.Operation
		releases := operation.Verb == model.Patch && (operation.Change == model.Change{} || operation.Change.Finalizers != nil && *operation.Change.Finalizers == "")
		return releases && request.Name == object.name && request.Call <= object.last().At && request.mayHaveSucceeded()
	})
}

// checkAdmission checks a request about an object when its namespace was terminating or gone.
func checkAdmission(request Request, n *namespace) []Violation {
	creates := request.Operation.Verb == model.Create
	switch {
	case !request.Outcome.Succeeded() || !request.isLinearizable():
	case request.Call > n.gone:
		return []Violation{NamespaceEmptied.broken(request.Name, "%s of %s succeeded (%d) after its namespace was gone",
			request.Operation.Verb, request.Name, request.Outcome.Code)}
	case request.Call > n.terminating && creates:
		return []Violation{NamespaceClosed.broken(request.Name, "%s was created while its namespace was terminating", request.Name)}
	}
	return nil
}
