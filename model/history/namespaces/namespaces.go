package namespaces

import (
	"maps"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Namespace is what a history shows of the deletion of one namespace.
type Namespace struct {
	// Requested is when a client first sent its delete. From Terminating on, it was certain that the namespace was terminating, and from Gone on,
	// that it was gone. All are history.Never where nothing shows that.
	Requested, Terminating, Gone time.Duration
	// last is the last state that was observed.
	last model.Object
}

// Of returns the namespaces of the round, by name.
func Of(h *history.History) map[string]*Namespace {
	found := map[string]*Namespace{}
	for _, name := range h.Homes {
		found[name] = &Namespace{Requested: history.Never, Terminating: history.Never, Gone: history.Never}
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

func (n *Namespace) observe(event history.Event) {
	n.last = event.Object
	if event.Object.Terminating {
		n.Terminating = min(n.Terminating, event.At)
	}
	if event.Type == history.Deleted {
		n.Gone = min(n.Gone, event.At)
	}
}

func (n *Namespace) note(request history.Request) {
	deletes := request.Operation.Verb == model.Delete
	switch {
	case request.Outcome.Code == 404:
		n.Gone = min(n.Gone, request.Return)
	case deletes && request.Outcome.Succeeded():
		n.Terminating = min(n.Terminating, request.Return)
		fallthrough
	case deletes && request.Outcome.Lost():
		n.Requested = min(n.Requested, request.Call)
	}
}

// Check returns the promises about namespaces that the history breaks: they are emptied and removed, and their objects stay until then, or until
// their finalizers go.
func Check(h *history.History) []history.Violation {
	var violations []history.Violation
	homes, residents := Of(h), h.Observed()
	for _, uid := range slices.Sorted(maps.Keys(residents)) {
		violations = append(violations, checkResident(h, uid, residents[uid], homes[h.Homes[residents[uid].Name]])...)
	}
	for _, request := range h.Requests {
		if n := homes[h.Homes[request.Name]]; n != nil {
			violations = append(violations, checkAdmission(request, n)...)
		}
	}
	held := map[string]bool{}
	for _, name := range h.Unseen {
		held[h.Homes[name]] = true
	}
	for _, object := range residents {
		if object.IsHeld() {
			held[h.Homes[object.Name]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(homes)) {
		if n := homes[name]; n.Gone == history.Never && n.Terminating != history.Never && !held[name] && n.last.Finalizers == "" {
			violations = append(violations, Completed.Broken(name, "%s is still terminating, although nothing in it is held", name))
		}
	}
	return violations
}

// checkResident checks why an object was deleted and removed.
func checkResident(h *history.History, uid string, object *history.Observed, n *Namespace) []history.Violation {
	kept, held := Kept, Held
	if object.Replaces {
		kept, held = history.AtomicRemoval, history.AtomicRemoval
	}
	var violations []history.Violation
	deletion := slices.IndexFunc(object.Events, func(event history.Event) bool { return event.Object.Terminating || event.Type == history.Deleted })
	if deletion >= 0 && object.Events[deletion].At < n.Requested && !isDeleted(h, uid, object.Events[deletion].At) {
		violations = append(violations, kept.Broken(object.Name, "%s was deleted, and no client had deleted it or its namespace", object.Name))
	}
	if last := object.Last(); object.IsGone() && last.Object.Finalizers != "" && !isReleased(h, object) {
		violations = append(violations, held.Broken(object.Name, "%s was removed with the finalizers %q, and no client had removed them",
			object.Name, last.Object.Finalizers))
	}
	return violations
}

// isDeleted reports whether a client had sent a delete of an object by some time.
func isDeleted(h *history.History, uid string, by time.Duration) bool {
	return slices.ContainsFunc(h.Requests, func(request history.Request) bool {
		return request.Operation.Verb == model.Delete && request.Operation.UID == uid && request.Call <= by && request.MayHaveSucceeded()
	})
}

// isReleased reports whether a client may have removed the finalizers of an object. A patch that names no change does that.
func isReleased(h *history.History, object *history.Observed) bool {
	return slices.ContainsFunc(h.Requests, func(request history.Request) bool {
		operation := request.Operation
		releases := operation.Verb == model.Patch && (operation.Change == model.Change{} || operation.Change.Finalizers != nil && *operation.Change.Finalizers == "")
		return releases && request.Name == object.Name && request.Call <= object.Last().At && request.MayHaveSucceeded()
	})
}

// checkAdmission checks a request about an object when its namespace was terminating or gone.
func checkAdmission(request history.Request, n *Namespace) []history.Violation {
	creates := request.Operation.Verb == model.Create
	switch {
	case !request.Outcome.Succeeded() || !request.IsLinearizable():
	case request.Call > n.Gone:
		return []history.Violation{Emptied.Broken(request.Name, "%s of %s succeeded (%d) after its namespace was gone",
			request.Operation.Verb, request.Name, request.Outcome.Code)}
	case request.Call > n.Terminating && creates:
		return []history.Violation{Closed.Broken(request.Name, "%s was created while its namespace was terminating", request.Name)}
	}
	return nil
}
