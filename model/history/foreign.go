package history

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// foreign are the steps by which other clients may have led to the versions of an object that no response to a write shows. Each happens after the
// request for the version before it was sent, and before anything shows the version.
func (h *History) foreign(name string, view view) []porcupine.Operation {
	if len(h.Writers) == 0 {
		return nil
	}
	seen := h.sightings()
	known, _ := logOf(seen)
	var steps []porcupine.Operation
	before, earliest := version{deleted: true}, int64(0)
	for i, next := range known[name] {
		shown := shownAt(seen, name, next)
		if call, written := h.writes(name, before, next, shown); written {
			earliest = max(earliest, call)
		} else if !before.deleted || !next.deleted && mayCreate(known[name][:i], next) {
			steps = append(steps, foreignSteps(before, next, earliest, int64(shown), view, fmt.Sprint("f", i))...)
		}
		before = next
	}
	return steps
}

// shownAt is when something has first shown a version.
func shownAt(seen []sighting, name string, version version) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, sighting := range seen {
		if sighting.name == name && sighting.number == version.number {
			first = min(first, sighting.at)
		}
	}
	return first
}

// writes reports whether a request of the run has led to a version, and when the first such request was sent. The response to a write that changes
// nothing also shows a version, which was there before.
func (h *History) writes(name string, before, next version, shown time.Duration) (call int64, written bool) {
	call = math.MaxInt64
	for _, request := range h.Requests {
		if next.deleted || request.Name != name || !request.showsVersion() || number(request.Outcome.Object.ResourceVersion) != next.number ||
			request.Call > shown || !request.changes(before) {
			continue
		}
		call, written = min(call, int64(request.Call)), true
	}
	return call, written
}

// changes reports whether a request makes another version of one, or a new object where there is none.
func (r Request) changes(before version) bool {
	if before.deleted {
		return r.Operation.Verb == model.Create || r.Outcome.Code == http.StatusCreated
	}
	return r.Operation.Verb != model.Get && r.Operation.Of(before.object) != before.object
}

// mayCreate reports whether another client may have created an object: it may copy the annotation of those before it, but not invent one.
func mayCreate(before []version, next version) bool {
	return next.object.Value == "" || slices.ContainsFunc(before, func(version version) bool { return version.object.Value == next.object.Value })
}

// foreignSteps are the steps of another client that lead from one version to the next one, or to its end. A removal has two steps where those of the
// run's requests have two.
func foreignSteps(before, next version, call, shown int64, view view, id string) []porcupine.Operation {
	step := func(call int64, operation model.Operation, outcome model.Outcome) porcupine.Operation {
		return porcupine.Operation{Input: operation, Call: call, Output: outcome, Return: shown, Metadata: -1}
	}
	outcome := model.Outcome{Code: http.StatusOK}
	operation := model.Operation{Verb: model.Foreign, Careless: view >= careless}
	if !before.deleted {
		operation.ResourceVersion = before.object.ResourceVersion
	}
	if !next.deleted {
		outcome.Object = &next.object
		return []porcupine.Operation{step(call, operation, outcome)}
	}
	operation.UID = next.object.UID
	if view == strict {
		return []porcupine.Operation{step(call, operation, outcome)}
	}
	removes := model.Operation{Verb: model.Remove, Awaits: id, UID: operation.UID, ResourceVersion: operation.ResourceVersion}
	operation.ResourceVersion, operation.Marks = "", id
	return []porcupine.Operation{step(0, operation, outcome), step(call, removes, outcome)}
}

// undecidable returns why other clients' writes on an object are not all known; empty if they are.
func (h *History) undecidable(name string) string {
	switch {
	case len(h.Writers) == 0:
		return ""
	case !h.Comparable():
		return h.writtenBy("the resourceVersions are not numeric, so that these writes have no order")
	case h.isStray(name):
		return h.writtenBy("one of them has created or relabeled an object without the labels of the run")
	case len(h.Streams) == 0 || slices.ContainsFunc(h.Streams, func(stream Stream) bool { return stream.ID == h.Streams[0].ID && stream.Stalled }):
		return h.writtenBy("the watch has not delivered all of these writes")
	case !slices.Contains(h.seen().Names, name):
		return h.writtenBy("the watch has lost its position, so that these writes are not all known")
	}
	return ""
}

func (h *History) writtenBy(reason string) string {
	return fmt.Sprintf("%s also writes these objects: %s", strings.Join(h.Writers, ", "), reason)
}

// isStray reports whether an object is one of those that watches and lists of the run do not select.
func (h *History) isStray(name string) bool {
	return slices.ContainsFunc(h.sightings(), func(seen sighting) bool { return seen.name == name && seen.object.Stray })
}

// undecided is the violation of an object that another client also writes, so that it may be none.
func undecided(name, reason string) Violation {
	violation := Linearizable.broken(name, "%s", reason)
	violation.Undecided = true
	return violation
}

// requestOf is the index of the request of a step; -1 for one of another client.
func requestOf(step porcupine.Operation) int { return step.Metadata.(int) }

// clientOf describes who did what no order explains.
func (h *History) clientOf(request int) string {
	if request < 0 {
		return "this write of " + cmp.Or(strings.Join(h.Writers, ", "), "another client")
	}
	return "this response of client " + strconv.Itoa(h.Requests[request].Client)
}
