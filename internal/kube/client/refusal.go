package client

import (
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
)

// RefusedByAdmission parses the refusal of a request by admission. It reports false for requests that succeeded, and for refusals that do
// not come from admission.
func (r Response) RefusedByAdmission() (admission.Refusal, bool) {
	if r.Err == nil {
		return admission.Refusal{}, false
	}
	return admission.Read(r.Message())
}

// RefusedPlainCreate reports whether the server forbade a create for a reason unrelated to the object's metadata: neither a terminating
// namespace, nor an owner that the credentials may not block.
func (r Response) RefusedPlainCreate() bool {
	return r.sent.Method == http.MethodPost && r.sent.Subresource == "" && apierrors.IsForbidden(r.Err) &&
		!apierrors.HasStatusCause(r.Err, corev1.NamespaceTerminatingCause) && len(r.sent.object().GetOwnerReferences()) == 0
}

// Action describes the request as a permission without a namespace: "create pods", "create pods/eviction".
func (r Response) Action() string {
	attributes := r.sent.attributes()
	if attributes == nil {
		return r.Request
	}
	attributes.Namespace = ""
	return Permission(*attributes)
}

// Sent returns the object that the request sent; empty when it sent none.
func (r Response) Sent() *Object { return r.sent.object() }

// failedWebhooks are the webhooks that the API server could not call until the retries of a request ended. Requests that they refuse are
// not retried again.
type failedWebhooks struct {
	mu    sync.Mutex
	names map[string]bool
}

// failedWebhook returns the name of the webhook that the API server could not call; empty for other responses.
func (r Response) failedWebhook() string {
	refusal, ok := r.RefusedByAdmission()
	if !ok || !refusal.Failed || r.Authoritative() {
		return ""
	}
	return refusal.Name
}

func (f *failedWebhooks) has(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return name != "" && f.names[name]
}

func (f *failedWebhooks) note(name string) {
	if name == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = true
}
