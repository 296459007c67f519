package client

// Domain is the prefix of every label, annotation and finalizer of the harness.
const Domain = "deletion-conformance.github.io"

const (
	// RunLabel is on every object that a run creates. Its value is the run's id.
	RunLabel = Domain + "/run"
	// WorkerLabel is on the objects that a worker's specs create. Its value is the worker's number.
	WorkerLabel = Domain + "/worker"
	// SpecLabel is on the objects that one spec creates. Its value is unique to the spec.
	SpecLabel = Domain + "/spec"
	// CanaryLabel is on the objects that a barrier creates.
	CanaryLabel = Domain + "/canary"
	// Hold is the harness's finalizer. It freezes an object in mid-deletion.
	Hold = Domain + "/hold"
)

// IsCanary reports whether an object belongs to a barrier and not to the test.
func IsCanary(object *Object) bool { return object.GetLabels()[CanaryLabel] != "" }
