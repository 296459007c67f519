package framework

import (
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
)

// Domain prefixes every label, annotation and finalizer of the harness.
const Domain = "deletion-conformance.github.io"

const (
	// RunLabel is on everything a run makes, with the run's id.
	RunLabel = Domain + "/run"
	// WorkerLabel is on what a worker's specs make, with the worker's number.
	WorkerLabel = Domain + "/worker"
	// SpecLabel is on what one spec makes, with an id of its own.
	SpecLabel = Domain + "/spec"
	// CanaryLabel is on what a barrier makes.
	CanaryLabel = Domain + "/canary"
	// Hold is the harness's own finalizer: it freezes an object in the middle of its deletion.
	Hold = Domain + "/hold"
)

// selector selects what the worker's specs made.
func (t Terms) selector() string {
	return labels.Set{RunLabel: t.Run, WorkerLabel: strconv.Itoa(t.Worker)}.String()
}

// selector selects what this spec made.
func (c *Cluster) selector() string {
	return labels.Set{RunLabel: c.session.Run, SpecLabel: c.spec}.String()
}
