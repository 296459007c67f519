package v1alpha1

// Operation is a kind of deletion whose time is measured.
type Operation string

const (
	// BackgroundDelete is the time from an owner's end to that of a dependent, by a background delete: the collector's
	// lag. A dependent that came after the owner's end counts from its own beginning, one with several owners from the
	// last owner's end.
	BackgroundDelete Operation = "background"
	// ForegroundDelete is the time from when an owner was seen to wait for its dependents to its end, one figure for
	// each number of levels of dependents below it.
	ForegroundDelete Operation = "foreground"
	// OrphanRelease is the time from when an owner was seen to be orphaning to when a dependent had lost the reference.
	OrphanRelease Operation = "orphan-release"
	// OrphanDelete is the time from when an owner was seen to be orphaning to when the collector was done with it.
	OrphanDelete Operation = "orphan"
	// NamespaceDelete is the time from when a namespace was seen to terminate to its end.
	NamespaceDelete Operation = "namespace"
	// FinalizerRelease is the time from when an object was seen to terminate with a finalizer that others had put on it to when it
	// was seen without, one figure for each finalizer. It is measured of resources that are tested in the place of ConfigMaps, whose
	// controllers are not Kubernetes' own.
	FinalizerRelease Operation = "finalizer-release"
)

// Operations are all operations, in the order in which they are shown.
var Operations = []Operation{BackgroundDelete, ForegroundDelete, OrphanRelease, OrphanDelete, NamespaceDelete, FinalizerRelease}

// Figure is how long one kind of deletion took on a cluster, over all behaviors: exact quantiles by nearest rank, in
// seconds on the runner's clock. But for FinalizerRelease, objects that waited for others than the cluster's own
// controllers are left out: those that the harness held with its finalizer, and pods that were given a grace period.
type Figure struct {
	Operation Operation `json:"act"`
	// Levels is how many levels of dependents stood below the owner; only for foreground deletes.
	Levels int `json:"levels,omitempty"`
	// Finalizer is what was removed; only for FinalizerRelease.
	Finalizer string `json:"finalizer,omitempty"`
	// Count is how many deletions were measured.
	Count int     `json:"count"`
	P50   float64 `json:"p50Seconds"`
	P90   float64 `json:"p90Seconds"`
	P99   float64 `json:"p99Seconds"`
	Max   float64 `json:"maxSeconds"`
	// PerSecond is how many dependents of one owner were deleted in a second, where one had a hundred or more of them; only
	// for background deletes.
	PerSecond float64 `json:"perSecond,omitempty"`
}
