// Package grace checks the graceful deletion of pods, with a kubelet and without.
package grace

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	objectMeta   = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	podLifecycle = "concepts/workloads/pods/pod-lifecycle"
)

// Properties of graceful deletion.
var (
	Decreases = &history.Property{ID: "explore.grace.only-decreases", Ordered: true, Rule: model.Rule{
		Text:   "The deletionGracePeriodSeconds of a terminating pod must not increase, and its deletionTimestamp must not move to a later time.",
		Source: objectMeta, Promise: "Once the deletionTimestamp is set, this value may not be unset or be set further into the future, although it may be shortened"}}
	Expired = &history.Property{ID: "explore.grace.expired", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A delete that shortens the grace period of a pod does not move a deletionTimestamp that has passed.",
		Source: "k8s.io/apiserver/pkg/registry/rest/delete.go"}}
	Requested = &history.Property{ID: "explore.grace.requested", Ordered: true, Rule: model.Rule{
		Text:    "The deletionGracePeriodSeconds of a pod must be the gracePeriodSeconds of a delete, or its terminationGracePeriodSeconds.",
		Source:  "reference/kubernetes-api/definitions/delete-options-v1-meta",
		Promise: "The duration in seconds before the object should be deleted."}}
	NeverEarly = &history.Property{ID: "explore.grace.never-early", Ordered: true, Rule: model.Rule{
		Text:    "A pod with a node must stay until its termination is confirmed, or a delete with gracePeriodSeconds 0 is requested.",
		Source:  podLifecycle,
		Promise: "When a force deletion is performed, the API server does not wait for confirmation from the kubelet that the Pod has been terminated"}}
	Immediate = &history.Property{ID: "explore.grace.immediate", Ordered: true, Rule: model.Rule{
		Text:   "The deletionGracePeriodSeconds of a pod without a node is 0.",
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/strategy.go"}, Observed: true}

	FullGrace = &history.Property{ID: "explore.node.full-grace", Ordered: true, Rule: model.Rule{
		Text:    "A pod whose container ignores SIGTERM must stay until its grace period has expired.",
		Source:  podLifecycle,
		Promise: "Once the grace period has expired, the KILL signal is sent to any remaining processes"}}
	Removed = &history.Property{ID: "explore.node.removed", Ordered: true, Rule: model.Rule{
		Text:    "A pod must be removed when its grace period has expired and no finalizer holds it.",
		Source:  podLifecycle,
		Promise: "The kubelet triggers forcible removal of the Pod object from the API server, by setting grace period to 0 (immediate deletion)."}}
)
