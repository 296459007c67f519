package graceful

// Pages with the promises of several behaviors, and their sentences.
const (
	podLifecycle  = "concepts/workloads/pods/pod-lifecycle"
	objectMeta    = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	deleteOptions = "reference/kubernetes-api/definitions/delete-options-v1-meta"
	apiConcepts   = "reference/using-api/api-concepts"
	lifecycleHook = "concepts/containers/container-lifecycle-hooks"
	forceDelete   = "tasks/run-application/force-delete-stateful-set-pod"
	// podStrategy is the source for pods without a grace period, which are not documented.
	podStrategy = "pkg/registry/core/pod/strategy.go"
	// restDelete is the source for deletes of terminating objects, which are documented only in part.
	restDelete = "k8s.io/apiserver/pkg/registry/rest/delete.go"

	gracefulByDefault = "By default, all deletes are graceful within 30 seconds."
	onlyShortened     = "Number of seconds allowed for this object to gracefully terminate before it will be removed from the system. ... " +
		"May only be shortened."
	notPostponed = "Once the deletionTimestamp is set, this value may not be unset or be set further into the future, although it may " +
		"be shortened"
	mustBeFulfilled = "Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict status will be returned."
	containersEnd   = "If the Pod was still running on a node, that forcible deletion triggers the kubelet to begin immediate cleanup."
	nameIsFree      = "It removes the Pod in the API immediately so a new Pod can be created with the same name."
	signaled        = "The kubelet triggers the container runtime to send a TERM signal to process 1 inside each container."
	terminalPhase   = "The kubelet transitions the Pod into a terminal phase (`Failed` or `Succeeded` depending on the end state of its containers)."
	deletesComplete = "The design aim is for you to be able to request deletion ... but also be able to ensure that deletes eventually complete."
	notReady        = "Terminating endpoints always have their `ready` status as `false` ... the actual readiness can be checked as a condition `serving`."
)
