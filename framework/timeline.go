package framework

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Timeline is the evidence of one behaviour: what was asked of the API server and what was seen to happen, each with
// its moment on the runner's clock. It travels in reports, so it holds no secrets: no headers, no credentials, and
// nothing of objects beyond what deletion is about.
type Timeline struct {
	Requests []Request     `json:"requests,omitempty"`
	Events   []Observation `json:"events,omitempty"`
}

// Request is one request to the API server and its answer.
type Request struct {
	// At is when the request was sent.
	At time.Time `json:"at"`
	// Verb is the HTTP method.
	Verb string `json:"verb"`
	// Path is the URL's path with its query.
	Path string `json:"path"`
	// Body is what was sent, shortened to some kilobytes; empty for reads and for Secrets.
	Body string `json:"body,omitempty"`
	// Status is the HTTP status, 0 where no answer came.
	Status int `json:"status"`
	// Latency is the time to the answer's headers, in nanoseconds.
	Latency time.Duration `json:"latency"`
	// Warnings are the texts of the answer's Warning headers.
	Warnings []string `json:"warnings,omitempty"`
	// Error says why no answer came.
	Error string `json:"error,omitempty"`
	// Refusal is the server's message where it refused (status 400 and above).
	Refusal string `json:"refusal,omitempty"`
}

// Observation is one event of a watch, reduced to what deletion is about.
type Observation struct {
	// At is when the event arrived.
	At time.Time `json:"at"`
	// Type is ADDED, MODIFIED or DELETED.
	Type              string                  `json:"type"`
	Kind              string                  `json:"kind"`
	Namespace         string                  `json:"namespace,omitempty"`
	Name              string                  `json:"name"`
	UID               types.UID               `json:"uid"`
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

// evidenceEntry is the name under which a spec's evidence travels in Ginkgo's report.
const evidenceEntry = "evidence"

// Evidence is what a spec leaves in Ginkgo's report beside its outcome.
type Evidence struct {
	Timeline Timeline `json:"timeline"`
	// Explanation says of each object that still exists why it does; only filled when the spec failed.
	Explanation []string `json:"explanation,omitempty"`
	// RunError is set when the spec could not be judged because the cluster or the way to it failed (throttled,
	// unavailable, connection lost): an error of the run, not of the behaviour.
	RunError string `json:"runError,omitempty"`
}

// String keeps Ginkgo's own reporters from printing a page of JSON: they show this instead.
func (e Evidence) String() string {
	encoded, err := json.Marshal(e.Explanation)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
