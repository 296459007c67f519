package history

import (
	"slices"
	"strconv"
)

// Check returns the promises that the history breaks.
func (h *History) Check() []Violation {
	var violations []Violation
	if h.Settled == "" && !h.Graceful && h.Homes == nil && h.Operated == nil {
		for _, name := range h.Names {
			violations = append(violations, h.checkObject(name)...)
		}
	}
	_, differing := logOf(h.sightings())
	violations = append(violations, differing...)
	violations = append(violations, h.checkSameOrder()...)
	violations = append(violations, h.checkStaysGone()...)
	return h.blameStrays(append(violations, h.seen().checkObserved()...))
}

// checkObserved checks what requires that all changes were seen.
func (h *History) checkObserved() []Violation {
	var violations []Violation
	if h.Homes != nil && h.Operated == nil {
		violations = append(violations, h.checkNamespaces()...)
	}
	if !h.Comparable() {
		return violations
	}
	if h.Graceful {
		violations = append(violations, h.checkGrace()...)
	}
	known, _ := logOf(h.sightings())
	if len(h.unseen) == 0 {
		violations = append(violations, h.checkOwnership(known)...)
	}
	if h.Operated != nil {
		violations = append(violations, h.checkOperator(known)...)
	}
	violations = append(violations, h.checkLists(known)...)
	for i := range h.Streams {
		violations = append(violations, h.checkStream(known, i)...)
	}
	return append(violations, h.checkEnds(known)...)
}

// Comparable reports whether all resourceVersions are numbers, which have an order.
func (h *History) Comparable() bool {
	isOrdered := func(resourceVersion string) bool {
		_, err := strconv.ParseUint(resourceVersion, 10, 64)
		return err == nil
	}
	return !slices.ContainsFunc(h.sightings(), func(seen sighting) bool { return !isOrdered(seen.object.ResourceVersion) }) &&
		!slices.ContainsFunc(h.Workloads, func(event Event) bool { return !isOrdered(event.Object.ResourceVersion) })
}

// checkEnds checks that a watch has shown the end of each object that is gone at the end of the round.
func (h *History) checkEnds(known log) []Violation {
	complete := slices.ContainsFunc(h.Streams, func(stream Stream) bool { return stream.Label == "" && stream.To != "" })
	var violations []Violation
	for _, name := range h.Names {
		versions := known[name]
		if len(versions) == 0 || versions[len(versions)-1].deleted || !complete || !h.isGone(name, versions[len(versions)-1]) {
			continue
		}
		violations = append(violations, WatchComplete.broken(name,
			"no watch has delivered DELETED of the object, which is gone; its last state was %s", versions[len(versions)-1].object))
	}
	return violations
}

// isGone reports whether the last response about an object shows that it is gone, and that its last version is. Another client may have created it
// after that.
func (h *History) isGone(name string, last version) bool {
	for _, request := range slices.Backward(h.Requests) {
		if request.Name == name && request.isLinearizable() {
			return request.Outcome.Code == 404 && (len(h.Writers) == 0 || shownAt(h.sightings(), name, last) < request.Call)
		}
	}
	return false
}
