package reads

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// checkLists checks that each list shows one state of the collection, and that this is not too old.
func checkLists(h *history.History, known history.Log) []history.Violation {
	var violations []history.Violation
	for i, request := range h.Requests {
		// A response that is no list has no versions.
		if request.Operation.Verb != model.Select || request.Listing == nil || len(request.Listing.Versions) == 0 {
			continue
		}
		violations = append(violations, checkSnapshot(h, known, i)...)
		if message := older(h, i); message != "" {
			violations = append(violations, history.Violation{Property: ListForward, Rule: ListForward.Rule, Request: i, Stream: -1, Message: message})
		}
	}
	return violations
}

func checkSnapshot(h *history.History, known history.Log, i int) []history.Violation {
	request := h.Requests[i]
	at := request.Listing.Versions[0]
	violation := history.Violation{Property: ListSnapshot, Rule: ListSnapshot.Rule, Request: i, Stream: -1}
	for _, page := range request.Listing.Versions {
		if page != at {
			violation.Message = fmt.Sprintf("the pages of one list have the resourceVersions %s and %s", at, page)
			return []history.Violation{violation}
		}
	}
	for _, name := range h.Names {
		expected, exists := known.At(name, history.Number(at))
		exists = exists && (request.Operation.Label == "" || request.Operation.Label == expected.Label)
		listed, ok := request.Listing.Objects[name]
		violation.Name = name
		switch {
		case exists && !ok:
			violation.Message = fmt.Sprintf("a list at resourceVersion %s lacks the object: %s", at, expected)
		case ok && !exists:
			violation.Message = fmt.Sprintf("a list at resourceVersion %s contains an object that did not exist or match then: %s", at, listed)
		case ok && listed != expected:
			violation.Message = fmt.Sprintf("a list at resourceVersion %s shows %s; the object was %s", at, listed, expected)
		default:
			continue
		}
		return []history.Violation{violation}
	}
	return nil
}

// older returns why a list is too old; empty if it is not.
func older(h *history.History, i int) string {
	request := h.Requests[i]
	at, least := history.Number(request.Listing.Versions[0]), history.Number(request.Version)
	switch {
	case request.Match == "Exact" && at != least:
		return fmt.Sprintf("a list that requires resourceVersion %s has %d", request.Version, at)
	case at < least:
		return fmt.Sprintf("a list that must not be older than resourceVersion %s has %d", request.Version, at)
	case !request.IsLinearizable():
		return ""
	}
	for _, before := range h.Requests {
		if before.Return >= request.Call {
			continue
		}
		if seen := newest(before); seen > at {
			return fmt.Sprintf("a list without resourceVersion has %d, and an earlier response to client %d showed %d", at, before.Client, seen)
		}
	}
	return ""
}

// newest is the newest resourceVersion that a response shows.
func newest(r history.Request) uint64 {
	switch {
	case r.Listing != nil && len(r.Listing.Versions) > 0:
		return history.Number(r.Listing.Versions[0])
	case r.Outcome.Object != nil && !r.Operation.DryRun:
		return history.Number(r.Outcome.Object.ResourceVersion)
	}
	return 0
}
