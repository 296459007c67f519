package requests

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
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// foreign are the steps by which other clients may have led to the versions of an object that no response to a write shows. Each happens after the
// request for the version before it was sent, and before anything shows the version.
func foreign(h *history.History, name string, view view) []porcupine.Operation {
	if len(h.Writers) == 0 {
		return nil
	}
	seen := h.Sightings()
	known, _ := history.LogOf(seen)
	var steps []porcupine.Operation
	before, earliest := history.Version{Deleted: true}, int64(0)
	for i, next := range known[name] {
		shown := history.ShownAt(seen, name, next)
		if call, written := writes(h, name, before, next, shown); written {
			earliest = max(earliest, call)
		} else if !before.Deleted || !next.Deleted && mayCreate(known[name][:i], next) {
			steps = append(steps, foreignSteps(before, next, earliest, int64(shown), view, fmt.Sprint("f", i))...)
		}
		before = next
	}
	return steps
}

// writes reports whether a request of the run has led to a version, and when the first such request was sent. The response to a write that changes
// nothing also shows a version, which was there before.
func writes(h *history.History, name string, before, next history.Version, shown time.Duration) (call int64, written bool) {
	call = math.MaxInt64
	for _, request := range h.Requests {
		if next.Deleted || request.Name != name || !request.ShowsVersion() || history.Number(request.Outcome.Object.ResourceVersion) != next.Number ||
			request.Call > shown || !changes(request, before) {
			continue
		}
		call, written = min(call, int64(request.Call)), true
	}
	return call, written
}

// changes reports whether a request makes another version of one, or a new object where there is none.
func changes(r history.Request, before history.Version) bool {
	if before.Deleted {
		return r.Operation.Verb == model.Create || r.Outcome.Code == http.StatusCreated
	}
	return r.Operation.Verb != model.Get && r.Operation.Of(before.Object) != before.Object
}

// mayCreate reports whether another client may have created an object: it may copy the annotation of those before it, but not invent one.
func mayCreate(before []history.Version, next history.Version) bool {
	return next.Object.Value == "" || slices.ContainsFunc(before, func(version history.Version) bool { return version.Object.Value == next.Object.Value })
}

// foreignSteps are the steps of another client that lead from one version to the next one, or to its end. A removal has two steps where those of the
// run's requests have two.
func foreignSteps(before, next history.Version, call, shown int64, view view, id string) []porcupine.Operation {
	step := func(call int64, operation model.Operation, outcome model.Outcome) porcupine.Operation {
		return porcupine.Operation{Input: operation, Call: call, Output: outcome, Return: shown, Metadata: -1}
	}
	outcome := model.Outcome{Code: http.StatusOK}
	operation := model.Operation{Verb: model.Foreign, Careless: view >= careless}
	if !before.Deleted {
		operation.ResourceVersion = before.Object.ResourceVersion
	}
	if !next.Deleted {
		outcome.Object = &next.Object
		return []porcupine.Operation{step(call, operation, outcome)}
	}
	operation.UID = next.Object.UID
	if view == strict {
		return []porcupine.Operation{step(call, operation, outcome)}
	}
	removes := model.Operation{Verb: model.Remove, Awaits: id, UID: operation.UID, ResourceVersion: operation.ResourceVersion}
	operation.ResourceVersion, operation.Marks = "", id
	return []porcupine.Operation{step(0, operation, outcome), step(call, removes, outcome)}
}

// undecidable returns why other clients' writes on an object are not all known; empty if they are.
func undecidable(h *history.History, name string) string {
	switch {
	case len(h.Writers) == 0:
		return ""
	case !h.Comparable():
		return writtenBy(h, "the resourceVersions are not numeric, so that these writes have no order")
	case h.IsStray(name):
		return writtenBy(h, "one of them has created or relabeled an object without the labels of the run")
	case len(h.Streams) == 0 || slices.ContainsFunc(h.Streams, func(stream history.Stream) bool { return stream.ID == h.Streams[0].ID && stream.Stalled }):
		return writtenBy(h, "the watch has not delivered all of these writes")
	case !slices.Contains(h.Seen().Names, name):
		return writtenBy(h, "the watch has lost its position, so that these writes are not all known")
	}
	return ""
}

func writtenBy(h *history.History, reason string) string {
	return fmt.Sprintf("%s also writes these objects: %s", strings.Join(h.Writers, ", "), reason)
}

// undecided is the violation of an object that another client also writes, so that it may be none.
func undecided(name, reason string) history.Violation {
	violation := Linearizable.Broken(name, "%s", reason)
	violation.Undecided = true
	return violation
}

// requestOf is the index of the request of a step; -1 for one of another client.
func requestOf(step porcupine.Operation) int { return step.Metadata.(int) }

// clientOf describes who did what no order explains.
func clientOf(h *history.History, request int) string {
	if request < 0 {
		return "this write of " + cmp.Or(strings.Join(h.Writers, ", "), "another client")
	}
	return "this response of client " + strconv.Itoa(h.Requests[request].Client)
}
