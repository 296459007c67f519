package requests

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// patience limits the search for an order of the requests on one object. Where it ends, nothing is known of the object.
const patience = 10 * time.Second

// life is the model as Porcupine takes it.
var life = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{model.State{}} },
	Step: func(state, input, output any) []any {
		var possible []any
		next, _ := state.(model.State).Step(input.(model.Operation), output.(model.Outcome))
		for _, state := range next {
			possible = append(possible, state)
		}
		return possible
	},
}).ToModel()

// Check returns the requests that no order explains.
func Check(h *history.History) []history.Violation {
	var violations []history.Violation
	for _, name := range h.Names {
		violations = append(violations, checkObject(h, name)...)
	}
	return violations
}

// checkObject checks the requests on one object. First each request takes effect at one moment, and each refusal has a reason. Where no
// order explains that, one thing after the other is given up: that a removal is decided and done at one moment, and that a resourceVersion
// refuses only deletes that require another one, which upstream does not keep either; the same of a uid; and that other refusals have reasons.
//
// Where another client also writes the object, its writes are ordered with the requests. What only a careless one explains is not decided.
func checkObject(h *history.History, name string) []history.Violation {
	if reason := undecidable(h, name); reason != "" {
		return []history.Violation{undecided(name, reason)}
	}
	if isExplained(h, name, strict) {
		return nil
	}
	for _, observed := range []struct {
		view     view
		property *history.Property
	}{{decidesFirst, history.AtomicRemoval}, {withoutVersions, RefusedByVersion}, {withoutUIDs, RefusedByUID}, {withoutRefusals, Refusals}} {
		if isExplained(h, name, observed.view) {
			found := explain(h, name, observed.view-1)
			found.Property = observed.property
			return []history.Violation{found}
		}
	}
	if len(h.Writers) > 0 && isExplained(h, name, careless) {
		return []history.Violation{undecided(name, writtenBy(h, "one of them may have removed what only the run has written"))}
	}
	found := explain(h, name, withoutRefusals)
	if request := h.Requests[max(found.Request, 0)]; found.Request >= 0 && request.Name == "" && request.Operation.Verb == model.Delete {
		found.Property = CollectionRequests
	}
	return []history.Violation{found}
}

func isExplained(h *history.History, name string, view view) bool {
	return porcupine.CheckOperationsTimeout(life, stepsOn(h, name, view), patience) != porcupine.Illegal
}

// view is how much of what requests do is taken for granted.
type view int

const (
	// strict takes each request for one step.
	strict view = iota
	// decidesFirst lets a request decide on a removal at one moment, and remove at a later one.
	decidesFirst
	// withoutVersions also leaves out deletes with a resourceVersion that were refused with a conflict, and withoutUIDs those with a uid.
	withoutVersions
	withoutUIDs
	// withoutRefusals also leaves out all requests that were refused although the object exists.
	withoutRefusals
	// careless also lets other clients remove what only the run has written.
	careless
)

// leavesOut reports whether a view leaves out a request.
func (v view) leavesOut(request history.Request) bool {
	sent, conflict := request.Operation, request.Operation.Verb == model.Delete && request.Outcome.Code == http.StatusConflict
	if v >= withoutRefusals {
		return isRefused(request) && !isPartial(request)
	}
	return conflict && (v >= withoutVersions && sent.ResourceVersion != "" || v >= withoutUIDs && sent.UID != "")
}

// stepsOn are the steps of all requests that read or write the most recent state of an object. Each knows its request by Metadata.
func stepsOn(h *history.History, name string, view view) []porcupine.Operation {
	var steps []porcupine.Operation
	for i, request := range h.Requests {
		for _, step := range stepsOf(request, name, strconv.Itoa(i), view) {
			steps = append(steps, porcupine.Operation{
				ClientId: request.Client, Input: step.operation, Call: int64(request.Call), Output: step.outcome, Return: end(request), Metadata: i,
			})
		}
	}
	return append(steps, foreign(h, name, view)...)
}

// step is what a request does to one object at one moment.
type step struct {
	operation model.Operation
	outcome   model.Outcome
}

func stepsOf(r history.Request, name, id string, view view) []step {
	switch verb := r.Operation.Verb; {
	case !r.IsLinearizable(), r.Name != "" && r.Name != name, view.leavesOut(r):
		return nil
	case r.Name == "" && verb == model.Delete:
		if isPartial(r) { // each object was deleted or not, as where the response was lost
			r.Outcome, r.Listing = model.Outcome{}, nil
		}
		selects, deletes := r.Operation, r.Operation
		selects.Verb, selects.Marks = model.Select, id
		deletes.Awaits, deletes.Label = id, ""
		return append([]step{{selects, outcomeOf(r, name)}}, removing(step{deletes, model.Outcome{Code: r.Outcome.Code}}, id+"r", view)...)
	case r.Name == "":
		return []step{{r.Operation, outcomeOf(r, name)}}
	}
	return removing(step{r.Operation, r.Outcome}, id, view)
}

// removing are the steps of a request that may remove the object.
func removing(whole step, id string, view view) []step {
	reads := whole.operation.Verb == model.Get || whole.operation.Verb == model.Create || whole.operation.DryRun
	if view == strict || reads || !whole.outcome.Lost() && !whole.outcome.Succeeded() {
		return []step{whole}
	}
	whole.operation.Marks = id
	remove := model.Operation{Verb: model.Remove, Awaits: id, UID: whole.operation.UID}
	if whole.operation.Verb == model.Delete {
		remove.ResourceVersion, remove.Finds = whole.operation.ResourceVersion, whole.operation.Awaits == ""
	}
	return []step{whole, {remove, model.Outcome{Code: whole.outcome.Code}}}
}

// outcomeOf is what the response to a request about the collection shows of one object.
func outcomeOf(r history.Request, name string) model.Outcome {
	if r.Listing == nil {
		return model.Outcome{Code: http.StatusNoContent}
	}
	outcome := model.Outcome{Code: r.Outcome.Code}
	if object, listed := r.Listing.Objects[name]; listed {
		outcome.Object = &object
	}
	return outcome
}

// explain finds the request that no order explains: after the longest order that does explain what it holds, it is the one that ended
// first.
func explain(h *history.History, name string, view view) history.Violation {
	steps := stepsOn(h, name, view)
	_, info := porcupine.CheckOperationsVerbose(life, steps, patience)
	states, rest := []model.State{{}}, steps
	if partials := info.PartialLinearizationsOperations(); len(partials[0]) > 0 {
		longest := slices.MaxFunc(partials[0], func(a, b []porcupine.Operation) int { return cmp.Compare(len(a), len(b)) })
		states, rest = after(longest, steps)
	}
	violation := Linearizable.Broken(name, "no order of the requests explains their responses")
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	for _, next := range rest {
		_, err := stepped(states, next)
		if broken := (*model.Violation)(nil); errors.As(err, &broken) {
			violation.Rule, violation.Request = broken.Rule, requestOf(next)
			violation.Message = fmt.Sprintf("no order of the requests explains %s: %s", clientOf(h, violation.Request), broken.Detail)
			break
		}
	}
	return violation
}

// stepped are the states that are possible after a step from one of some states. The error is that of the last of them.
func stepped(states []model.State, step porcupine.Operation) (next []model.State, err error) {
	for _, state := range states {
		var possible []model.State
		possible, err = state.Step(step.Input.(model.Operation), step.Output.(model.Outcome))
		next = append(next, slices.DeleteFunc(possible, func(s model.State) bool { return slices.Contains(next, s) })...)
	}
	if len(next) > 0 {
		return next, nil
	}
	return nil, err
}

// after are the states that are possible after an order of steps, and the steps that are not in it.
func after(order, all []porcupine.Operation) ([]model.State, []porcupine.Operation) {
	states, rest := []model.State{{}}, slices.Clone(all)
	for _, done := range order {
		states, _ = stepped(states, done)
		rest = slices.DeleteFunc(rest, func(other porcupine.Operation) bool {
			return other.Metadata == done.Metadata && other.Input == done.Input
		})
	}
	return states, rest
}

// isRefused reports whether the server refused a request about an object that exists.
func isRefused(r history.Request) bool {
	return r.Outcome.Code >= 400 && r.Outcome.Code < 500 && r.Outcome.Code != 404
}

// end is when the request has taken effect at the latest.
func end(r history.Request) int64 {
	if r.Outcome.Lost() || isPartial(r) {
		return math.MaxInt64
	}
	return int64(r.Return)
}

// isPartial reports whether a request about the collection failed. A deletecollection may do so after it has deleted some objects.
func isPartial(r history.Request) bool {
	return r.Name == "" && !r.Outcome.Succeeded()
}
