package model

import (
	"errors"
	"net/http"
	"slices"
)

// Step returns the states that are possible after an operation with this outcome. It fails with a Violation if the outcome is not possible in this
// state.
//
// The garbage collector removes its finalizers at any moment, so the operation may find the object before or after that. The same is true of a
// removal that it has decided on earlier.
//
// An operation whose response was lost takes effect wherever it can: one that never does is ordered after everything else.
func (s State) Step(operation Operation, outcome Outcome) ([]State, error) {
	next, err := s.step(operation, outcome)
	states := s.afterCollector(operation, outcome)
	switch {
	case err == nil && !slices.Contains(states, next):
		states = append(states, next)
	case len(states) == 0:
		return nil, err
	}
	return states, nil
}

// afterCollector are the states that are possible if the garbage collector has acted before the operation.
func (s State) afterCollector(operation Operation, outcome Outcome) []State {
	var states []State
	if released, may := s.released(); may {
		if next, err := released.step(operation, outcome); err == nil {
			states = append(states, next)
		}
	}
	if s.Exists && s.Marks.Has(collector) {
		overtaken := s.removed()
		overtaken.Marks = overtaken.Marks.Without(collector)
		if next, err := overtaken.step(operation, outcome); err == nil {
			states = append(states, next)
		}
	}
	return states
}

// errNotYet is the error of a step whose earlier step has not been made.
var errNotYet = errors.New("an earlier step of the operation comes first")

// Marks of a step that decided to go on, and of one that decided against it.
const (
	proceed = "+"
	stop    = "-"
)

// collector marks that the garbage collector may have decided to remove the object that had the name before. Its patch requires no uid when it
// removes, so that it may remove the object that has the name now.
const collector = "collector"

func (s State) step(operation Operation, outcome Outcome) (State, error) {
	if mark := operation.Awaits; mark != "" {
		decided := s.Marks
		s.Marks = decided.Without(mark+proceed, mark+stop)
		switch {
		case decided == s.Marks:
			return s, errNotYet
		case decided.Has(mark + stop):
			return s.marked(operation, stop), nil
		case !s.Exists && operation.Finds && !outcome.Lost():
			return s, violates(MustExist, "a delete succeeded (%d), and another request had removed the object", outcome.Code)
		case !s.Exists: // another request has removed it meanwhile
			return s.marked(operation, stop), nil
		}
	}
	switch operation.Verb {
	case Remove:
		return s.removes(operation)
	case Select:
		return s.selects(operation, outcome)
	case Foreign:
		return s.foreign(operation, outcome.Object)
	}
	if creates := !s.Exists && operation.Verb == Update; creates && (outcome.Lost() || outcome.Code == http.StatusCreated) {
		return s.done(operation, outcome.Object) // some resources are created by an update, such as leases
	}
	refusals := s.refusals(operation)
	certain := slices.IndexFunc(refusals, func(r refusal) bool { return r.certain })
	switch {
	case outcome.Lost() && certain >= 0:
		return s.marked(operation, stop), nil
	case !outcome.Succeeded() && !outcome.Lost():
		return s, s.explain(operation, outcome, refusals)
	case certain >= 0:
		return s, violates(refusals[certain].rule, "%s succeeded (%d) on %s", operation.Verb, outcome.Code, s)
	case operation.Verb == Get:
		return s.shown(outcome.Object)
	case outcome.Code == http.StatusCreated && s.Exists, outcome.Code == http.StatusOK && operation.Verb == Apply && !s.Exists:
		return s, violates(Created, "%s was answered with %d on %s", operation.Verb, outcome.Code, s)
	}
	return s.done(operation, outcome.Object)
}

// done is the state after an operation that nothing forbids. A dry-run shows what the operation would do.
func (s State) done(operation Operation, shown *Object) (State, error) {
	next, err := s.applied(operation, shown)
	if operation.DryRun && err == nil {
		return s, nil
	}
	return next, err
}

// removes is the state after a request has removed what it decided to. Its preconditions must be met at that moment, too. The garbage collector may
// have decided the same meanwhile.
func (s State) removes(operation Operation) (State, error) {
	if mismatch(operation.UID, s.UID) == yes || mismatch(operation.ResourceVersion, s.ResourceVersion) == yes {
		return s, violates(Preconditions, "a request that requires uid %q and resourceVersion %q removed %s", operation.UID, operation.ResourceVersion, s)
	}
	next := s.removed()
	if released, _ := s.released(); !released.Exists {
		next.Marks = next.Marks.With(collector)
	}
	return next, nil
}

// refusal is a reason to refuse an operation. It is not certain where the object's uid or resourceVersion is not known.
type refusal struct {
	code    int
	rule    Rule
	certain bool
}

// refusals are the reasons to refuse an operation in this state.
func (s State) refusals(operation Operation) []refusal {
	switch {
	case operation.Verb == Create && s.Exists:
		return []refusal{{http.StatusConflict, OneOfAName, true}}
	case operation.Verb == Create, operation.Verb == Apply: // may create an object
	case !s.Exists && operation.Verb == Update && (operation.UID != "" || operation.ResourceVersion != ""):
		return []refusal{{http.StatusNotFound, MustExist, true}, {http.StatusConflict, Stale, false}} // the latter for resources that updates create
	case !s.Exists:
		return []refusal{{http.StatusNotFound, MustExist, true}}
	}
	rule := Stale
	if operation.Verb == Delete {
		rule = Preconditions
	}
	var refusals []refusal
	for _, mismatched := range []answer{mismatch(operation.UID, s.UID), mismatch(operation.ResourceVersion, s.ResourceVersion)} {
		if mismatched != no {
			refusals = append(refusals, refusal{http.StatusConflict, rule, mismatched == yes})
		}
	}
	if operation.Verb == Update && operation.ResourceVersion == "" {
		refusals = append(refusals, refusal{http.StatusUnprocessableEntity, Unconditional, false})
	}
	if s.Terminating && operation.Change.of(s.Object).Finalizers.Exceeds(s.Finalizers) {
		refusals = append(refusals, refusal{http.StatusUnprocessableEntity, OnlyRemoved, true})
	}
	return refusals
}

// answer is yes, no, or not known.
type answer int

const (
	no answer = iota
	yes
	unknown
)

// mismatch reports whether what an operation requires differs from what the object has.
func mismatch(required, has string) answer {
	switch {
	case required == "" || required == has:
		return no
	case has == "":
		return unknown
	}
	return yes
}

// explain fails unless one of the refusals is the one that the server sent.
func (s State) explain(operation Operation, outcome Outcome, refusals []refusal) error {
	if slices.ContainsFunc(refusals, func(r refusal) bool { return r.code == outcome.Code }) {
		return nil
	}
	if len(refusals) > 0 {
		return violates(refusals[0].rule, "%s was refused with %d, not with %d, on %s", operation.Verb, outcome.Code, refusals[0].code, s)
	}
	switch {
	case outcome.Code == http.StatusNotFound && s.Finalizers != "":
		return violates(Held, "%s found no object (404) instead of %s", operation.Verb, s)
	case outcome.Code == http.StatusNotFound:
		return violates(Persists, "%s found no object (404) instead of %s", operation.Verb, s)
	}
	return violates(NoReason, "%s was refused with %d on %s", operation.Verb, outcome.Code, s)
}

// selects is the state after a list or deletecollection that shows the object, or no object. Where the response was lost, or shows no
// objects, the selector decides.
func (s State) selects(operation Operation, outcome Outcome) (State, error) {
	matches := s.Exists && (operation.Label == "" || operation.Label == s.Label)
	decision := stop
	if matches {
		decision = proceed
	}
	switch {
	case outcome.Lost() || outcome.Code == http.StatusNoContent: // shows nothing
	case matches && outcome.Object == nil:
		return s, violates(Selected, "the response lacks %s", s)
	case !matches && outcome.Object != nil:
		return s, violates(Selected, "the response contains the object (%s), but there is %s", outcome.Object, s)
	}
	next, err := s.shown(outcome.Object)
	return next.marked(operation, decision), err
}

// marked is the state with the decision of a step for the next one.
func (s State) marked(operation Operation, decision string) State {
	if operation.Marks != "" {
		s.Marks = s.Marks.With(operation.Marks + decision)
	}
	return s
}

// applied is the state after an operation that nothing forbids. The response shows an object, or nothing if it is nil.
func (s State) applied(operation Operation, shown *Object) (State, error) {
	next := s
	if s.Exists {
		next.Object = operation.Of(s.Object)
	} else {
		next = State{Exists: true, Object: operation.Of(Object{}), Former: s.Former, Marks: s.Marks}
	}
	removes := next.Terminating && next.Finalizers == ""
	switch {
	case shown != nil && mismatch(s.UID, shown.UID) == yes:
		return s, violates(Current, "%s on %s returned %s", operation.Verb, s, shown)
	case removes && operation.Marks != "": // by a later step
		return s.marked(operation, proceed), nil
	case removes:
		return s.removed(), nil
	}
	next = next.marked(operation, stop)
	return next, s.written(&next, operation, shown)
}

// written takes the uid and resourceVersion of what was written from the response, and fails where that shows something else.
func (s State) written(next *State, operation Operation, shown *Object) error {
	changed := next.Content() != s.Content()
	if shown == nil {
		// The garbage collector may have removed its finalizer just before, so that the operation has added it again.
		if _, may := s.released(); changed || may {
			next.ResourceVersion = ""
		}
		return nil
	}
	switch {
	case shown.Content() != next.Content():
		return violates(Current, "%s on %s returned %s", operation.Verb, s, shown)
	case operation.DryRun:
		return nil
	case shown.UID == s.Former:
		return violates(NewUID, "%s returned uid %s, which the object before it had", operation.Verb, shown.UID)
	case changed && shown.ResourceVersion == s.ResourceVersion:
		return violates(NewVersion, "%s on %s returned %s", operation.Verb, s, shown)
	}
	next.UID, next.ResourceVersion = shown.UID, shown.ResourceVersion
	return nil
}

// shown is the state after a read. It takes over the uid and resourceVersion where they were not known.
func (s State) shown(object *Object) (State, error) {
	if object == nil {
		return s, nil
	}
	if object.Content() != s.Content() || mismatch(s.UID, object.UID) == yes || mismatch(s.ResourceVersion, object.ResourceVersion) == yes {
		return s, violates(Current, "the response shows %s, but there is %s", object, s)
	}
	if object.UID == s.Former {
		return s, violates(NewUID, "the response shows uid %s, which the object before it had", object.UID)
	}
	s.UID, s.ResourceVersion = object.UID, object.ResourceVersion
	return s, nil
}

// deletionFinalizers are the finalizers after a delete with a propagation policy: the garbage collector's are those of the policy, and
// without a policy they stay. https://kubernetes.io/docs/concepts/architecture/garbage-collection/
func deletionFinalizers(finalizers Names, policy string) Names {
	kept := finalizers.Without(Foreground, Orphan)
	switch policy {
	case PolicyForeground:
		return kept.With(Foreground)
	case PolicyOrphan:
		return kept.With(Orphan)
	case PolicyBackground:
		return kept
	}
	return finalizers
}
