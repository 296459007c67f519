package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Timeline is the evidence of one behavior: which requests went to the API server, what was seen to happen, and what
// the API server asked a webhook of the behavior's, each with its time on the runner's clock. It travels in reports,
// so it holds no secrets: no headers, no credentials, and nothing of objects beyond what deletion is about.
type Timeline struct {
	Requests []Request     `json:"requests,omitempty"`
	Events   []Observation `json:"events,omitempty"`
	Reviews  []Review      `json:"reviews,omitempty"`
}

// ObjectReference names an object, or with an empty name a collection of objects.
type ObjectReference struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	// Resource is the plural under which the server serves the kind: configmaps.
	Resource  string `json:"resource,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// UID is empty where it was not known: before an object was created, and for collections.
	UID types.UID `json:"uid,omitempty"`
	// Canary says that the object belongs to a barrier, and not to what is tested.
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
	// Object is what the request is about; nil where it is about no object (discovery, reviews). For a create that
	// succeeded it is the object that was created.
	Object *ObjectReference `json:"object,omitempty"`
	// Subresource is the part of the object that the request is about ("status", "eviction"); empty for all of it.
	Subresource string `json:"subresource,omitempty"`
	// Body is what was sent, shortened to some kilobytes; empty for reads, for Secrets and for reviews of tokens.
	Body string `json:"body,omitempty"`
	// Status is the HTTP status, 0 where no response came.
	Status int `json:"status"`
	// Latency is the time to the response's headers, in nanoseconds.
	Latency time.Duration `json:"latency"`
	// Warnings are the texts of the response's Warning headers.
	Warnings []string `json:"warnings,omitempty"`
	// Error says why no response came.
	Error string `json:"error,omitempty"`
	// Refusal is the server's message where it refused (status 400 and above).
	Refusal string `json:"refusal,omitempty"`
}

// Observation is one event of a watch, reduced to what deletion is about.
type Observation struct {
	// At is when the event arrived.
	At time.Time `json:"at"`
	// Type is ADDED, MODIFIED or DELETED.
	Type string `json:"type"`
	ObjectReference
	ResourceVersion   string                  `json:"resourceVersion,omitempty"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp,omitempty"`
	GraceSeconds      *int64                  `json:"deletionGracePeriodSeconds,omitempty"`
	Finalizers        []string                `json:"finalizers,omitempty"`
	Owners            []metav1.OwnerReference `json:"owners,omitempty"`
	// Phase is status.phase, where the kind has one.
	Phase string `json:"phase,omitempty"`
	// Containers is the state of each container of a pod: "main: terminated (exit 143)".
	Containers []string `json:"containers,omitempty"`
}

// Review is one question of the API server's to an admission webhook of the behavior's, and the answer.
type Review struct {
	// At is when the question arrived.
	At time.Time `json:"at"`
	// Operation is CREATE, UPDATE or DELETE.
	Operation string `json:"operation"`
	// Object is what the question is about.
	Object ObjectReference `json:"object"`
	// Subresource is the part of the object that the question is about ("eviction"); empty for all of it.
	Subresource string `json:"subresource,omitempty"`
	// User is whose request is reviewed; empty where it is the run's own.
	User string `json:"user,omitempty"`
	// DryRun says that the reviewed request asks what would be done.
	DryRun bool `json:"dryRun,omitempty"`
	// GraceSeconds, Preconditions and PropagationPolicy are those of a reviewed delete's options.
	GraceSeconds      *int64                `json:"gracePeriodSeconds,omitempty"`
	Preconditions     *metav1.Preconditions `json:"preconditions,omitempty"`
	PropagationPolicy string                `json:"propagationPolicy,omitempty"`
	// StoredGraceSeconds is the object's own deletionGracePeriodSeconds at that moment; nil as long as it is not being deleted.
	StoredGraceSeconds *int64 `json:"storedDeletionGracePeriodSeconds,omitempty"`
	// Allowed is the answer; it is false as long as there is none.
	Allowed bool `json:"allowed"`
	// Message is what was said with it.
	Message string `json:"message,omitempty"`
	// Latency is the time to the answer, in nanoseconds.
	Latency time.Duration `json:"latency"`
}
