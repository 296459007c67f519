package history

import (
	"slices"
	"strconv"
)

// Check returns the promises that the history breaks.
func (h *History) Check() []Finding {
	var findings []Finding
	if h.Settled == "" && !h.Graceful && h.Homes == nil {
		for _, name := range h.Names {
			findings = append(findings, h.checkObject(name)...)
		}
	}
	_, differing := logOf(h.sightings())
	findings = append(findings, differing...)
	findings = append(findings, h.checkSameOrder()...)
	return append(findings, h.seen().checkObserved()...)
}

// checkObserved checks what requires that all changes were seen.
func (h *History) checkObserved() []Finding {
	var findings []Finding
	if h.Homes != nil {
		findings = append(findings, h.checkNamespaces()...)
	}
	if !h.Comparable() {
		return findings
	}
	if h.Graceful {
		findings = append(findings, h.checkGrace()...)
	}
	known, _ := logOf(h.sightings())
	if len(h.unseen) == 0 {
		findings = append(findings, h.checkOwnership(known)...)
	}
	findings = append(findings, h.checkLists(known)...)
	for i := range h.Streams {
		findings = append(findings, h.checkStream(known, i)...)
	}
	return append(findings, h.checkEnds(known)...)
}

// Comparable reports whether all resourceVersions are numbers, which have an order.
func (h *History) Comparable() bool {
	return !slices.ContainsFunc(h.sightings(), func(seen sighting) bool {
		_, err := strconv.ParseUint(seen.object.ResourceVersion, 10, 64)
		return err != nil
	})
}

// checkEnds checks that a watch has shown the end of each object: none exists after the round.
func (h *History) checkEnds(known log) []Finding {
	complete := slices.ContainsFunc(h.Streams, func(stream Stream) bool { return stream.Label == "" && stream.To != "" })
	var findings []Finding
	for _, name := range h.Names {
		versions := known[name]
		if len(versions) == 0 || versions[len(versions)-1].deleted || !complete || !h.isGone(name) {
			continue
		}
		findings = append(findings, WatchComplete.broken(name,
			"no watch has delivered DELETED of the object, which is gone; its last state was %s", versions[len(versions)-1].object))
	}
	return findings
}

// isGone reports whether the last response about an object shows that it is gone.
func (h *History) isGone(name string) bool {
	for _, request := range slices.Backward(h.Requests) {
		if request.Name == name && request.isLinearizable() {
			return request.Outcome.Code == 404
		}
	}
	return false
}
