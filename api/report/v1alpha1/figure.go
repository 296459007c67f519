package v1alpha1

// Operation is a kind of deletion whose time is measured.
type Operation string

const (
	// BackgroundDelete is the time from an owner's deletion to that of a dependent, by background deletion: the collector's lag. A
	// dependent that was created later counts from its creation, and one with several owners from the last owner's deletion.
	BackgroundDelete Operation = "background"
	// ForegroundDelete is the time from when an owner was first observed to wait for its dependents to its deletion, one figure for each
	// number of levels of dependents below it.
	ForegroundDelete Operation = "foreground"
	// OrphanRelease is the time from when an owner was first observed to be orphaning to when a dependent had lost the reference.
	OrphanRelease Operation = "orphan-release"
	// OrphanDelete is the time from when an owner was first observed to be orphaning to when the collector had finished.
	OrphanDelete Operation = "orphan"
	// NamespaceDelete is the time from when a namespace was first observed to be terminating to its deletion.
	NamespaceDelete Operation = "namespace"
	// FinalizerRelease is the time from when an object was first observed to be terminating with a finalizer of another controller to when
	// the finalizer was removed, one figure for each finalizer. It is measured for resources under test, which may have controllers outside
	// Kubernetes.
	FinalizerRelease Operation = "finalizer-release"
)

// Operations are all operations, in the order of reports.
var Operations = []Operation{BackgroundDelete, ForegroundDelete, OrphanRelease, OrphanDelete, NamespaceDelete, FinalizerRelease}

// Figure is how long one kind of deletion took on a cluster, over all behaviors: exact quantiles by nearest rank, in seconds of the
// runner's clock. Except for FinalizerRelease, it excludes objects that waited for something other than the cluster's own controllers: for
// the harness's finalizer, or for the grace period of a pod.
type Figure struct {
	Operation Operation `json:"operation"`
	// Levels is the number of levels of dependents below the owner; only for foreground deletes.
	Levels int `json:"levels,omitempty"`
	// Finalizer is the removed finalizer; only for FinalizerRelease.
	Finalizer string `json:"finalizer,omitempty"`
	// Count is the number of measured deletions.
	Count int     `json:"count"`
	P50   float64 `json:"p50Seconds"`
	P90   float64 `json:"p90Seconds"`
	P99   float64 `json:"p99Seconds"`
	Max   float64 `json:"maxSeconds"`
	// PerSecond is how many dependents of one owner were deleted per second, for owners with a hundred or more; only for background
	// deletes.
	PerSecond float64 `json:"perSecond,omitempty"`
}
