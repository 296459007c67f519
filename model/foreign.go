package model

import "strings"

// foreign is the state after another client may have written: a version that a watch has shown, or the end of one where the outcome has no
// object. Where a request of the run has led to it before, nothing changes.
//
// The server keeps its promises to every client, so another client's write obeys the same rules. Besides, another client leaves the label, the
// annotation and the finalizers alone that the run has written. One that does not (Operation.Careless) cannot be distinguished from a server that
// loses them.
func (s State) foreign(operation Operation, shown *Object) (State, error) {
	if shown == nil {
		return s.foreignRemoval(operation)
	}
	switch {
	case s.Exists && (s.ResourceVersion == shown.ResourceVersion || s.ResourceVersion == "" && s.Content() == shown.Content()):
		return s.shown(shown)
	case operation.ResourceVersion == "" && s.Exists:
		return s, violates(OneOfAName, "another client created %s, but there is %s", shown, s)
	case operation.ResourceVersion == "" && shown.UID == s.Former:
		return s, violates(NewUID, "another client created an object with uid %s, which the object before it had", shown.UID)
	case operation.ResourceVersion == "":
		return State{Exists: true, Object: *shown, Former: s.Former, Marks: s.Marks}, nil
	case !s.Exists:
		return s, violates(MustExist, "another client wrote %s, but there is no object", shown)
	case mismatch(operation.ResourceVersion, s.ResourceVersion) == yes || mismatch(s.UID, shown.UID) == yes:
		return s, violates(Current, "another client wrote %s over resourceVersion %s, but there is %s", shown, operation.ResourceVersion, s)
	case s.Terminating && !shown.Terminating:
		return s, violates(StaysTerminating, "another client wrote %s over %s", shown, s)
	case s.Terminating && shown.Finalizers.Without(Foreground, Orphan).Exceeds(s.Finalizers):
		return s, violates(OnlyRemoved, "another client wrote %s over %s", shown, s)
	case !leftAlone(s.Object, *shown, operation.Careless):
		return s, violates(Current, "another client wrote %s over %s, or the server did", shown, s)
	}
	s.Object = *shown
	return s, nil
}

// foreignRemoval is the state after another client may have removed an object. A delete marks an object with finalizers first, and the last finalizer
// is removed by its owner.
func (s State) foreignRemoval(operation Operation) (State, error) {
	switch {
	case s.Former == operation.UID, !s.Exists && s.Former == unknownUID: // a request of the run has removed it
		return s.marked(operation, stop), nil
	case !s.Exists, mismatch(operation.UID, s.UID) == yes:
		return s, errNotYet
	case mismatch(operation.ResourceVersion, s.ResourceVersion) == yes:
		return s, violates(Current, "resourceVersion %s was removed, but there is %s", operation.ResourceVersion, s)
	case s.Finalizers != "" && !s.Terminating, Own(s.Finalizers) != "" && !operation.Careless:
		return s, violates(Held, "another client removed %s, or the server did", s)
	case operation.Marks != "":
		return s.marked(operation, proceed), nil
	}
	return s.removed(), nil
}

// leftAlone reports whether a write keeps what only the run writes. A careless one may remove it.
func leftAlone(before, after Object, careless bool) bool {
	kept := Own(before.Finalizers) == Own(after.Finalizers) || careless && !Own(after.Finalizers).Exceeds(before.Finalizers)
	for _, field := range [][2]string{{before.Label, after.Label}, {before.Value, after.Value}} {
		kept = kept && (field[0] == field[1] || careless && field[1] == "")
	}
	return kept
}

// Own are the finalizers that only the run writes. Those of others contain a slash, after their domain or as their first character.
func Own(finalizers Names) Names {
	var names []string
	for _, name := range finalizers.Without(Foreground, Orphan).List() {
		if !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return NamesOf(names...)
}
