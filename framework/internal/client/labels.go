package client

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

// IsCanary says that an object belongs to a barrier, and not to what is tested.
func IsCanary(object *Object) bool { return object.GetLabels()[CanaryLabel] != "" }
