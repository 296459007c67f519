// Package checks finds the promises of its scenario that a history breaks.
package checks

import (
	"slices"

	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/grace"
	"github.com/deletion-conformance/deletion-conformance/model/history/namespaces"
	"github.com/deletion-conformance/deletion-conformance/model/history/operators"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
	"github.com/deletion-conformance/deletion-conformance/model/history/removals"
	"github.com/deletion-conformance/deletion-conformance/model/history/requests"
)

// Violations returns the promises that the history breaks.
func Violations(h *history.History) []history.Violation {
	var violations []history.Violation
	if h.Settled == "" && !h.Graceful && h.Homes == nil && h.Operated == nil {
		violations = requests.Check(h)
	}
	_, differing := history.LogOf(h.Sightings())
	violations = append(violations, differing...)
	violations = append(violations, reads.CheckSameOrder(h)...)
	violations = append(violations, removals.Check(h)...)
	return operators.BlameStrays(h, append(violations, observed(h.Seen())...))
}

// observed checks what requires that all changes were seen.
func observed(h *history.History) []history.Violation {
	var violations []history.Violation
	if h.Homes != nil && h.Operated == nil {
		violations = append(violations, namespaces.Check(h)...)
	}
	if !h.Comparable() {
		return violations
	}
	if h.Graceful {
		violations = append(violations, grace.Check(h)...)
	}
	known, _ := history.LogOf(h.Sightings())
	if len(h.Unseen) == 0 {
		violations = append(violations, ownership.Check(h, known)...)
	}
	if h.Operated != nil {
		violations = append(violations, operators.Check(h, known)...)
	}
	return append(violations, reads.Check(h, known)...)
}

// The properties of each kind of history, in the order of reports.
var (
	Objects = slices.Concat([]*history.Property{
		requests.Linearizable, history.AtomicRemoval, requests.RefusedByVersion, requests.RefusedByUID, requests.Refusals, history.SameVersion,
		removals.StaysGone, requests.CollectionRequests, reads.ListSnapshot, reads.ListForward,
	}, watches)
	Ownership = slices.Concat([]*history.Property{
		ownership.Kept, ownership.Collected, ownership.Completed, ownership.Blocked, ownership.Orphaned, ownership.Latest, ownership.Overruled,
		ownership.Cycles, ownership.Recreated,
	}, common)
	Grace = slices.Concat([]*history.Property{
		grace.Decreases, grace.Expired, grace.Requested, grace.NeverEarly, grace.Immediate,
	}, common)
	Nodes = slices.Concat([]*history.Property{
		grace.Decreases, grace.Expired, grace.Requested, grace.FullGrace, grace.Removed, grace.Immediate,
	}, common)
	Namespaces = slices.Concat([]*history.Property{
		namespaces.Emptied, namespaces.Completed, namespaces.Held, namespaces.Kept, namespaces.Closed,
	}, common)
	Operators = slices.Concat([]*history.Property{
		operators.Released, operators.Finalizers, operators.Fields, operators.Children, operators.Namespace, operators.Served, operators.Restored,
		operators.Stops, operators.FinalizerFirst, ownership.Recreated,
	}, common)

	common  = slices.Concat([]*history.Property{history.AtomicRemoval, history.SameVersion, removals.StaysGone, reads.ListForward}, watches)
	watches = []*history.Property{
		reads.WatchOrder, reads.WatchComplete, reads.WatchOnce, reads.WatchResumed, reads.WatchSameOrder, reads.WatchBookmarks, reads.WatchInitial,
		reads.WatchDeleted, reads.WatchSelector,
	}
)
