// Package workloads checks histories of workloads: of what controllers create and delete for them, and of what is left at a quiet moment.
package workloads

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/grace"
	"github.com/deletion-conformance/deletion-conformance/model/history/namespaces"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
)

const (
	daemonSets   = "concepts/workloads/controllers/daemonset"
	deployments  = "concepts/workloads/controllers/deployment"
	jobs         = "concepts/workloads/controllers/job"
	replicaSets  = "concepts/workloads/controllers/replicaset"
	statefulSets = "concepts/workloads/controllers/statefulset"
)

// Properties of a quiet moment.
var (
	Replicas = &history.Property{ID: "explore.workload.replicas", Rule: model.Rule{
		Text:    "A workload must have as many pods as it requires when its controller had time to finish.",
		Source:  replicaSets,
		Promise: "A ReplicaSet ensures that a specified number of pod replicas are running at any given time."}}
	Rollout = &history.Property{ID: "explore.workload.rollout", Rule: model.Rule{
		Text:    "The pods of a Deployment, StatefulSet or DaemonSet must have its current template when its controller had time to finish.",
		Source:  deployments,
		Promise: "Each time a new Deployment is observed by the Deployment controller, a ReplicaSet is created to bring up the desired Pods."}}
	Collected = &history.Property{ID: "explore.workload.collected", Rule: model.Rule{
		Text:   "What a workload has created must be deleted when all its owners are gone, unless it was orphaned.",
		Source: ownership.Collected.Rule.Source, Promise: ownership.Collected.Rule.Promise}}
	Completed = &history.Property{ID: "explore.workload.completed", Rule: model.Rule{
		Text:   "The deletion of a workload and of what it has created must end when nothing holds it any longer.",
		Source: ownership.Completed.Rule.Source, Promise: ownership.Completed.Rule.Promise}}
	Tracked = &history.Property{ID: "explore.workload.tracked", Rule: model.Rule{
		Text:    "The Job controller must remove its finalizer from pods that have finished, and from pods without a Job.",
		Source:  jobs,
		Promise: "This ensures that deleted pods have their finalizers removed by the Job controller."}}
	Endpoints = &history.Property{ID: "explore.workload.endpoints", Rule: model.Rule{
		Text:    "The EndpointSlices of a Service must show exactly the ready pods that it selects.",
		Source:  "concepts/services-networking/endpoint-slices",
		Promise: "These EndpointSlices include references to all the Pods that match the Service selector."}}
	Budgets = &history.Property{ID: "explore.workload.budgets", Observed: true, Rule: model.Rule{
		Text:   "A PodDisruptionBudget allows as many disruptions as its ready pods permit when its controller had time to finish.",
		Source: "k8s.io/kubernetes/pkg/controller/disruption/disruption.go"}}
	Emptied = &history.Property{ID: "explore.workload.emptied", Rule: model.Rule{
		Text:   "Nothing may be left in a namespace that is deleted when nothing holds it any longer.",
		Source: namespaces.Emptied.Rule.Source, Promise: namespaces.Emptied.Rule.Promise}}
	Recreated = &history.Property{ID: "explore.workload.recreated", Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A workload or Service that takes the name of a deleted one gets what it requires when its controller had time to finish.",
		Source: "k8s.io/kubernetes/pkg/controller/controller_utils.go"}}
	Retried = &history.Property{ID: "explore.workload.rollout-retried", Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A rollout of a Deployment goes on although an update of one of its ReplicaSets was refused once.",
		Source: "k8s.io/kubernetes/pkg/controller/deployment/rolling.go"}}
)

// Properties of what happened before that.
var (
	Confirmed = &history.Property{ID: "explore.workload.confirmed", Ordered: true, Rule: model.Rule{
		Text:   "A controller must not remove a pod with a node before its termination is confirmed.",
		Source: grace.NeverEarly.Rule.Source, Promise: grace.NeverEarly.Rule.Promise}}
	Kept = &history.Property{ID: "explore.workload.kept", Ordered: true, Rule: model.Rule{
		Text: "A pod must not be deleted without a cause: a client, the end or scaling of its workload, a new template, or " +
			"its own end.",
		Source: model.Persists.Source, Promise: model.Persists.Promise}}
	ClaimsKept = &history.Property{ID: "explore.workload.claims-kept", Ordered: true, Rule: model.Rule{
		Text:    "A claim of a StatefulSet must not be deleted while it has no owner, or by a StatefulSet that retains its claims.",
		Source:  statefulSets,
		Promise: "Deleting and/or scaling a StatefulSet down will *not* delete the volumes associated with the StatefulSet."}}
	DependentsKept = &history.Property{ID: "explore.workload.dependents-kept", Ordered: true, Rule: model.Rule{
		Text:   "What a workload has created must not be deleted while an owner exists and does not wait for it in foreground deletion.",
		Source: ownership.Kept.Rule.Source, Promise: ownership.Kept.Rule.Promise}}
	Blocked = &history.Property{ID: "explore.workload.blocked", Ordered: true, Rule: model.Rule{
		Text:   "A workload in foreground deletion must not be removed while a dependent that blocks it exists.",
		Source: ownership.Blocked.Rule.Source, Promise: ownership.Blocked.Rule.Promise}}
	Orphaned = &history.Property{ID: "explore.workload.orphaned", Ordered: true, Rule: model.Rule{
		Text:   "A workload that is deleted with propagationPolicy Orphan must not be removed while a dependent refers to it.",
		Source: ownership.Orphaned.Rule.Source, Promise: ownership.Orphaned.Rule.Promise}}
	Evictions = &history.Property{ID: "explore.workload.evictions", Ordered: true, Rule: model.Rule{
		Text:    "The eviction of a ready pod must take one of the disruptions that its PodDisruptionBudget allows.",
		Source:  "concepts/workloads/pods/disruptions",
		Promise: "then the Eviction API will allow voluntary disruption of one (but not two) pods at a time."}}
	Surplus = &history.Property{ID: "explore.workload.surplus", Ordered: true, Observed: true, Rule: model.Rule{
		Text:   "A controller creates no pod while its workload has as many as it has ever required.",
		Source: "k8s.io/kubernetes/pkg/controller/controller_utils.go"}}
)

// Properties are the properties of a history of workloads, in the order of reports.
var Properties = []*history.Property{
	Replicas, Rollout, Collected, Completed, Tracked, Endpoints, Budgets, Emptied, Recreated, Retried, Confirmed, Kept, ClaimsKept, DependentsKept, Blocked,
	Orphaned, ownership.Latest, ownership.Recreated, Evictions, Surplus,
}

// broken returns the violation of a property by an object.
func broken(property *history.Property, name, format string, values ...any) history.Violation {
	return history.Violation{Property: property, Rule: property.Rule, Name: name, Request: -1, Stream: -1, Message: fmt.Sprintf(format, values...)}
}
