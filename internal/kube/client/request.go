package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Request is one request, before it is sent.
type Request struct {
	// Method is the HTTP method.
	Method string
	Path   string
	Query  url.Values
	// Object is the subject of the request. Without a name it is a collection or, for a POST, the object to create. It is nil for requests
	// without an object.
	Object *v1alpha1.ObjectReference
	// Subresource is the subresource of the object, if any.
	Subresource string
	// Body is encoded as JSON, unless it is []byte; nil sends no body.
	Body any
	// ContentType is the body's media type; empty for JSON.
	ContentType string
	// Before are the uids of earlier objects with the name of the object to create.
	Before []types.UID
	// Begins is set for a DELETE that alone can start the deletion of its object, and whose response nothing checks.
	Begins bool
	// Repeats is set for a DELETE of an object that is terminating already. Repeating it has no further effect.
	Repeats bool
	// absent is set when the object is known not to exist.
	absent bool
}

// Response is the API server's response to one request.
type Response struct {
	// StatusCode is the HTTP status code; 0 without a response.
	StatusCode int
	// Object is the decoded body: the object, or a Status.
	Object *Object
	// Err is the refusal; nil when the request succeeded.
	Err error
	// Request describes the request, for messages.
	Request string
	// Body is the undecoded body.
	Body []byte

	// sent is the request. It determines the missing permission of a refusal.
	sent Request
	// warnings are the texts of the Warning headers.
	warnings []string
	// inferred is set when the response was lost and was reconstructed from the object.
	inferred bool
}

// Warnings returns the texts of the response's Warning headers. They are not known for a lost response that was inferred from the object.
func (r Response) Warnings() (texts []string, known bool) { return r.warnings, !r.inferred }

// Message is the server's message of a refusal; empty otherwise.
func (r Response) Message() string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// twoBudgets identifies the refusal to evict a pod that two disruption budgets select. It has the status code of an internal error, and
// neither reason nor cause.
const twoBudgets = "more than one PodDisruptionBudget"

// unreadable identifies the failure to read an object from the storage. Not every response has a reason for it.
const unreadable = "corrupt object"

// noUnsafeDelete identifies the refusal of a delete that ignores read errors by a resource whose storage does not support it, such as roles.
const noUnsafeDelete = "no unsafe deleter provided"

// Authoritative reports whether the server decided on the request, in contrast to errors on the way to it: no connection, throttling,
// overload, internal errors, expired credentials. Some decisions use the status codes of such errors: a disruption budget that refuses an
// eviction (429), two budgets that select the same pod, an object that cannot be read from the storage, a webhook of the run that cannot
// be called or responds with something invalid, and a delete that ignores read errors of a resource that does not support it (500).
// Admission refuses with any status code.
func (r Response) Authoritative() bool {
	if refusal, ok := r.RefusedByAdmission(); ok && !refusal.Failed {
		return true
	}
	return r.Err == nil || apierrors.HasStatusCause(r.Err, policyv1.DisruptionBudgetCause) || r.failedOnPurpose() ||
		r.StatusCode >= 400 && r.StatusCode < 500 && r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusUnauthorized
}

// Forbidden reports whether the server rejected the request because a permission is missing (403), or because a field requires a permission
// that is missing (422).
func (r Response) Forbidden() bool {
	return apierrors.IsForbidden(r.Err) || apierrors.IsInvalid(r.Err) && apierrors.HasStatusCause(r.Err, fieldForbidden)
}

// fieldForbidden is the cause of a rejected write to a field.
const fieldForbidden = metav1.CauseType(field.ErrorTypeForbidden)

// failedOnPurpose reports whether the spec provoked the internal error (500).
func (r Response) failedOnPurpose() bool {
	return r.StatusCode == http.StatusInternalServerError &&
		(strings.Contains(r.Message(), twoBudgets) || strings.Contains(r.Message(), unreadable) || strings.Contains(r.Message(), noUnsafeDelete) ||
			ownWebhook.MatchString(r.Message()))
}

// ownWebhook matches the name of a webhook of the run in a refusal.
var ownWebhook = regexp.MustCompile(`webhook "[a-z]+\.` + regexp.QuoteMeta(Domain) + `"`)

// quotaIsBusy reports whether a request failed because of concurrent writes to a ResourceQuota of its namespace. Such a request has changed
// nothing.
func (r Response) quotaIsBusy() bool {
	var status apierrors.APIStatus
	return apierrors.IsConflict(r.Err) && errors.As(r.Err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == quotas && (r.sent.Object == nil || r.sent.Object.Resource != quotas)
}

const quotas = "resourcequotas"

// SendOnce sends a request once. It disables the retries of client-go, which also repeat writes that may have been carried out.
func (c *Client) SendOnce(ctx context.Context, request Request) Response {
	response := Response{Request: request.String(), sent: request}
	sending := c.rest.Verb(request.Method).AbsPath(request.Path).MaxRetries(0)
	for name, values := range request.Query {
		for _, value := range values {
			sending = sending.Param(name, value)
		}
	}
	body, err := request.encoded()
	if err != nil {
		response.Err = fmt.Errorf("encode the body of %s: %w", response.Request, err)
		return response
	}
	if body != nil {
		sending = sending.Body(body)
	}
	if request.ContentType != "" {
		sending = sending.SetHeader("Content-Type", request.ContentType)
	}
	response.read(sending.Do(withSubject(ctx, request)))
	if response.Err == nil && c.accepts == "" && !request.answeredBy(response.Object) {
		response.Err = fmt.Errorf("%s: the response (%d) is not a valid response of a Kubernetes API server", response.Request, response.StatusCode)
	}
	request.complete(response)
	return response
}

// read decodes the result of client-go.
func (r *Response) read(result rest.Result) {
	result.StatusCode(&r.StatusCode)
	for _, warning := range result.Warnings() {
		r.warnings = append(r.warnings, warning.Text)
	}
	body, err := result.Raw()
	r.Body, r.Err = body, refusal(err, body)
	if status := apierrors.APIStatus(nil); errors.As(r.Err, &status) {
		r.StatusCode = int(status.Status().Code)
	}
	if object := (&Object{}); len(body) > 0 && object.UnmarshalJSON(body) == nil {
		r.Object = object
	}
}

// refusal prefers the Status that the server sent to the one that client-go derives from the HTTP status code.
func refusal(err error, body []byte) error {
	if err == nil {
		return nil
	}
	if notOwned := (*NotOwned)(nil); errors.As(err, &notOwned) { // without the URL around it
		return notOwned
	}
	sent := metav1.Status{}
	if json.Unmarshal(body, &sent) == nil && sent.Kind == "Status" && sent.Code != 0 {
		return &apierrors.StatusError{ErrStatus: sent}
	}
	return err
}

// encoded returns the encoded body; nil without one.
func (r Request) encoded() ([]byte, error) {
	switch body := r.Body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return body, nil
	}
	return json.Marshal(r.Body)
}

// answeredBy reports whether an object is a valid response to a successful request: a request that reads or writes a whole object must
// return an object of that kind. Lists are checked by their callers, and responses to deletes only by specs.
func (r Request) answeredBy(object *Object) bool {
	list := r.Method == http.MethodGet && r.Object != nil && r.Object.Name == ""
	if r.Object == nil || r.Object.Kind == "" || r.Subresource != "" || list || r.Method == http.MethodDelete {
		return true
	}
	return object != nil && object.GetKind() == r.Object.Kind
}

// complete adds the uid of the object in the response.
func (r Request) complete(response Response) {
	if r.Object == nil || response.Err != nil || response.Object == nil || response.Object.GetKind() != r.Object.Kind {
		return
	}
	if r.Object.Name == "" || r.Object.Name == response.Object.GetName() {
		r.Object.Name, r.Object.UID = response.Object.GetName(), response.Object.GetUID()
	}
}

// String returns the method and path.
func (r Request) String() string { return r.Method + " " + r.Path }

// attributes describe the request to the API server's authorizer; nil for requests without an object.
func (r Request) attributes() *authorizationv1.ResourceAttributes {
	if r.Object == nil {
		return nil
	}
	verbs := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
	attributes := &authorizationv1.ResourceAttributes{
		Verb: verbs[r.Method], Group: r.Object.Group, Resource: r.Object.Resource, Subresource: r.Subresource,
		Namespace: r.Object.Namespace, Name: r.Object.Name,
	}
	switch {
	case r.Method == http.MethodPost && r.Subresource == "":
		attributes.Name = "" // not part of the authorizer's attributes
	case r.Method == http.MethodDelete && r.Object.Name == "":
		attributes.Verb = "deletecollection"
	case r.Method == http.MethodGet && r.Query.Get("watch") != "":
		attributes.Verb = "watch"
	case r.Method == http.MethodGet && r.Object.Name == "":
		attributes.Verb = "list"
	}
	return attributes
}
