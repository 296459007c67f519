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
	// Object is what the request is about; without a name it is a collection, or for a POST what is to be created. It is
	// nil where the request is about no object.
	Object *v1alpha1.ObjectReference
	// Subresource is the part of the object that the request is about.
	Subresource string
	// Body is encoded as JSON, unless it is bytes, which are sent as they are; nil sends none.
	Body any
	// ContentType is the body's media type; JSON when empty.
	ContentType string
	// Before are the uids of objects that had the name of what is to be created.
	Before []types.UID
	// Begins is set for a DELETE that alone can begin its object's deletion and whose response nobody looks at.
	Begins bool
	// Repeats is set for a DELETE of an object that is terminating already. One more does what this one does.
	Repeats bool
	// absent is set where the object is known not to exist.
	absent bool
}

// Response is what the API server said to one request.
type Response struct {
	// StatusCode is the HTTP status code; 0 where no response came.
	StatusCode int
	// Object is what the response carried: the object, or a Status.
	Object *Object
	// Err is the refusal, nil when the request succeeded.
	Err error
	// Request is the request in words, for messages.
	Request string
	// Body is the response's body, as it came.
	Body []byte

	// sent is the request, for finding out which permission a refusal was for.
	sent Request
	// warnings are the texts of the Warning headers.
	warnings []string
	// inferred says that the response was lost, and that this is what it would have been, as far as that shows in the object.
	inferred bool
}

// Warnings are the texts of the response's Warning headers. They are not known of a response that was lost, though the
// object shows the rest of it.
func (r Response) Warnings() (texts []string, known bool) { return r.warnings, !r.inferred }

// Message is what the server said with a refusal; empty without one.
func (r Response) Message() string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// twoBudgets is all that tells the refusal to evict a pod under two disruption budgets from a failure of the server: it has
// no reason and no cause.
const twoBudgets = "more than one PodDisruptionBudget"

// Authoritative says that the server itself decided: the response is its word about the request, not trouble on the way to it
// (no connection, throttled, overloaded, failing, credentials that have expired). A disruption budget that refuses an
// eviction uses the status code of throttling, two that select the same pod use that of a failing server, and so does a
// webhook of the run's own that cannot be asked, or answers what it may not. Admission refuses with any status code.
func (r Response) Authoritative() bool {
	if refusal, is := r.RefusedByAdmission(); is && !refusal.Failed {
		return true
	}
	return r.Err == nil || apierrors.HasStatusCause(r.Err, policyv1.DisruptionBudgetCause) || r.failedOnPurpose() ||
		r.StatusCode >= 400 && r.StatusCode < 500 && r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusUnauthorized
}

// Refused says that the server did not do what was asked since somebody may not do it (403), or since a field may not be written
// by whoever wrote it, as some fields take a permission of their own (422).
func (r Response) Refused() bool {
	return apierrors.IsForbidden(r.Err) || apierrors.IsInvalid(r.Err) && apierrors.HasStatusCause(r.Err, fieldForbidden)
}

// fieldForbidden is the cause that a field may not be written.
const fieldForbidden = metav1.CauseType(field.ErrorTypeForbidden)

// failedOnPurpose says of an internal error (500) that it is what the spec has brought about.
func (r Response) failedOnPurpose() bool {
	return r.StatusCode == http.StatusInternalServerError &&
		(strings.Contains(r.Message(), twoBudgets) || ownWebhook.MatchString(r.Message()))
}

// ownWebhook is how the API server names a webhook of the run's own in a refusal.
var ownWebhook = regexp.MustCompile(`webhook "[a-z]+\.` + regexp.QuoteMeta(Domain) + `"`)

// quotaIsBusy says that a request about something else was refused because others were writing a ResourceQuota of its namespace
// at the same time. Nothing was done then.
func (r Response) quotaIsBusy() bool {
	var status apierrors.APIStatus
	return apierrors.IsConflict(r.Err) && errors.As(r.Err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == quotas && (r.sent.Object == nil || r.sent.Object.Resource != quotas)
}

const quotas = "resourcequotas"

// SendOnce sends a request and takes what comes of it. client-go's own repetitions are off: it repeats also writes that may
// have been done.
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
	if response.Err == nil && !request.answeredBy(response.Object) {
		response.Err = fmt.Errorf("%s: the response (%d) is not what a Kubernetes API server answers to that", response.Request, response.StatusCode)
	}
	request.complete(response)
	return response
}

// read takes over what client-go made of the response.
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

// refusal prefers the Status that the server sent over the one that client-go makes up from the HTTP status code.
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

// encoded is the body as it is sent; nil without one.
func (r Request) encoded() ([]byte, error) {
	switch body := r.Body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return body, nil
	}
	return json.Marshal(r.Body)
}

// answeredBy says whether an object can be the answer to a request that was granted: what reads or writes an object,
// and not only a part of it, is answered by such an object. Lists are looked at by who asks for them, and nobody looks
// at what a delete is answered by but specs on that.
func (r Request) answeredBy(object *Object) bool {
	list := r.Method == http.MethodGet && r.Object != nil && r.Object.Name == ""
	if r.Object == nil || r.Object.Kind == "" || r.Subresource != "" || list || r.Method == http.MethodDelete {
		return true
	}
	return object != nil && object.GetKind() == r.Object.Kind
}

// complete notes the uid of what the response shows to be the object.
func (r Request) complete(response Response) {
	if r.Object == nil || response.Err != nil || response.Object == nil || response.Object.GetKind() != r.Object.Kind {
		return
	}
	if r.Object.Name == "" || r.Object.Name == response.Object.GetName() {
		r.Object.Name, r.Object.UID = response.Object.GetName(), response.Object.GetUID()
	}
}

// String is the request in words.
func (r Request) String() string { return r.Method + " " + r.Path }

// attributes are the request as the API server's authorizer sees it; nil where it is about no object.
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
		attributes.Name = "" // which the authorizer is not told
	case r.Method == http.MethodDelete && r.Object.Name == "":
		attributes.Verb = "deletecollection"
	case r.Method == http.MethodGet && r.Query.Get("watch") != "":
		attributes.Verb = "watch"
	case r.Method == http.MethodGet && r.Object.Name == "":
		attributes.Verb = "list"
	}
	return attributes
}
