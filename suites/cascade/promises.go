package cascade

// Pages with the promises of several behaviors, as in Source.
const (
	garbageCollection    = "concepts/architecture/garbage-collection"
	ownersAndDependents  = "concepts/overview/working-with-objects/owners-dependents"
	finalizersPage       = "concepts/overview/working-with-objects/finalizers"
	useCascadingDeletion = "tasks/administer-cluster/use-cascading-deletion"
	deleteOptions        = "reference/kubernetes-api/definitions/delete-options-v1-meta"
	configMapReference   = "reference/kubernetes-api/core/config-map-v1"
	ownerReferences      = "reference/kubernetes-api/definitions/owner-reference-v1-meta"
	objectMeta           = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	apiConcepts          = "reference/using-api/api-concepts"
	admissionControllers = "reference/access-authn-authz/admission-controllers"
	replicaSets          = "concepts/workloads/controllers/replicaset"
	statefulSets         = "concepts/workloads/controllers/statefulset"
	jobs                 = "concepts/workloads/controllers/job"
	deployments          = "concepts/workloads/controllers/deployment"
	daemonSets           = "concepts/workloads/controllers/daemonset"
	forceDelete          = "tasks/run-application/force-delete-stateful-set-pod"
)

// Sentences of garbageCollection.
const (
	inBackground = "In background cascading deletion, the Kubernetes API server deletes the owner object immediately and ... " +
		"cleans up the dependent objects in the background."
	afterDependents = "After deleting all the dependent objects it knows about, the controller deletes the owner object."
	onlyBlocking    = "the only dependents that block owner deletion are those that have the `ownerReference.blockOwnerDeletion=true` field"
	canControl      = "When you delete an object, you can control whether Kubernetes deletes the object's dependents automatically"
)

// Sentences of ownersAndDependents.
const (
	blockingFirst = "the controller must delete dependent resources that also have `ownerReferences.blockOwnerDeletion=true` before it deletes the owner"
	orphanPolicy  = "If you specify an orphan deletion policy, Kubernetes adds the `orphan` finalizer so that the controller ignores dependent " +
		"resources after it deletes the owner object."
	onceAllAbsent = "the owner reference is treated as absent, and the dependent is subject to deletion once all owners are verified absent"
	manually      = "You can also configure these relationships manually by changing the value of this field."
)

// Sentences of finalizersPage, objectMeta, ownerReferences and deleteOptions.
const (
	untilRemoved   = "Prevents the object from being removed until all items are removed from its `metadata.finalizers` field"
	allOwnersGone  = "If ALL objects in the list have been deleted, this object will be garbage collected."
	whileReferring = "if the owner has the \"foregroundDeletion\" finalizer, then the owner cannot be deleted from the key-value store until this " +
		"reference is removed."
	defaultPolicy    = "The default policy is decided by the existing finalizer set in the metadata.finalizers and the resource-specific default policy."
	howCollected     = "Whether and how garbage collection will be performed."
	orphanDependents = "If true/false, the \"orphan\" finalizer will be added to/removed from the object's finalizers list."
)

// atMostOne is a sentence of forceDelete.
const atMostOne = "there is at most one Pod with a given identity running in a cluster"

// withoutEffect is a sentence of apiConcepts.
const withoutEffect = "Kubernetes guarantees that dry-run requests will not be persisted in storage or have any other side effects."
