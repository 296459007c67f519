package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Timeline is the evidence of one behavior: the requests to the API server, the observed events, and the reviews of the behavior's
// webhooks, each with its time on the runner's clock. It is part of reports, so it contains no secrets: no headers, no credentials, and
// only those fields of objects that are relevant to deletion.
type Timeline struct {
	Requests []Request     `json:"requests,omitempty"`
	Events   []Observation `json:"events,omitempty"`
	Reviews  []Review      `json:"reviews,omitempty"`
}

// ObjectReference identifies an object, or with an empty name a collection of objects.
type ObjectReference struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	// Resource is the plural name of the kind: configmaps.
	Resource  string `json:"resource,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// UID is empty when it was not known: before an object was created, and for collections.
	UID types.UID `json:"uid,omitempty"`
	// Canary is set for objects of barriers, which are not part of the test.
	Canary bool `json:"canary,omitempty"`
}

// Request is one request to the API server and its response.
type Request struct {
	// At is when the request was sent.
	At time.Time `json:"at"`
	// Verb is the HTTP method.
	Verb string `json:"verb"`
	// Path is the URL's path with its query.
	Path string `json:"path"`
	// Object is the object of the request; nil for requests without one (discovery, reviews). For a successful create it is the new object.
	Object *ObjectReference `json:"object,omitempty"`
	// Subresource is the subresource of the object ("status", "eviction"); empty for none.
	Subresource string `json:"subresource,omitempty"`
	// Body is the request's body, shortened to some kilobytes; empty for reads, for Secrets and for reviews of tokens.
	Body string `json:"body,omitempty"`
	// Status is the HTTP status; 0 without a response.
	Status int `json:"status"`
	// Latency is the time to the response's headers, in nanoseconds.
	Latency time.Duration `json:"latency"`
	// Warnings are the texts of the response's Warning headers.
	Warnings []string `json:"warnings,omitempty"`
	// Error is why there was no response.
	Error string `json:"error,omitempty"`
	// SpanID is the id of the request's span in the trace of the report, in 16 hexadecimal digits; empty when the run was not traced.
	SpanID string `json:"spanID,omitempty"`
	// Refusal is the server's message of a refusal (status 400 and above).
	Refusal string `json:"refusal,omitempty"`
}

// Observation is one event of a watch, reduced to the fields that are relevant to deletion.
type Observation struct {
	// At is when the event arrived.
	At time.Time `json:"at"`
	// Type is ADDED, MODIFIED or DELETED, for a component of the cluster STOPPED or STARTED, or for a fault of an exploration INJECTED.
	Type string `json:"type"`
	ObjectReference
	ResourceVersion   string                  `json:"resourceVersion,omitempty"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp,omitempty"`
	GraceSeconds      *int64                  `json:"deletionGracePeriodSeconds,omitempty"`
	Finalizers        []string                `json:"finalizers,omitempty"`
	Owners            []metav1.OwnerReference `json:"owners,omitempty"`
	// Changes are those of labels and of spec.selector since the previous event: "label app: a to b".
	Changes []string `json:"changes,omitempty"`
	// Writers are the field managers of the change, if metadata.managedFields has an entry of it that the previous event did not have. A write
	// that only removes fields leaves no entry.
	Writers []string `json:"writers,omitempty"`
	// Released are the finalizers that the change removed. Those of a DELETED event were removed by the write that deleted the object.
	Released []Release `json:"released,omitempty"`
	// Phase is status.phase, if the kind has one.
	Phase string `json:"phase,omitempty"`
	// Containers is the state of each container of a pod: "main: terminated (exit 143)".
	Containers []string `json:"containers,omitempty"`
}

// Release is a finalizer that was removed.
type Release struct {
	Finalizer string `json:"finalizer"`
	// SetBy are the field managers that set it; empty if metadata.managedFields has none, as after a change by admission.
	SetBy []string `json:"setBy,omitempty"`
}

// Review is a request of the API server to an admission webhook of the behavior, with the response.
type Review struct {
	// At is when the review arrived.
	At time.Time `json:"at"`
	// Operation is CREATE, UPDATE or DELETE.
	Operation string `json:"operation"`
	// Object is the reviewed object.
	Object ObjectReference `json:"object"`
	// Subresource is the reviewed subresource ("eviction"); empty for none.
	Subresource string `json:"subresource,omitempty"`
	// User is the user of the reviewed request; empty for the run's own requests.
	User string `json:"user,omitempty"`
	// DryRun is set when the reviewed request is a dry-run.
	DryRun bool `json:"dryRun,omitempty"`
	// GraceSeconds, Preconditions and PropagationPolicy are the options of a reviewed delete.
	GraceSeconds      *int64                `json:"gracePeriodSeconds,omitempty"`
	Preconditions     *metav1.Preconditions `json:"preconditions,omitempty"`
	PropagationPolicy string                `json:"propagationPolicy,omitempty"`
	// StoredGraceSeconds is the stored deletionGracePeriodSeconds at that time; nil when the object is not being deleted.
	StoredGraceSeconds *int64 `json:"storedDeletionGracePeriodSeconds,omitempty"`
	// Allowed is the response; false until there is one.
	Allowed bool `json:"allowed"`
	// Message is the message of the response.
	Message string `json:"message,omitempty"`
	// Latency is the time to the response, in nanoseconds.
	Latency time.Duration `json:"latency"`
}
