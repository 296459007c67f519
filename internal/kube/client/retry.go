package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Requests fail on the way to a server: connections break, a server is overloaded, a proxy returns its own error, or a response is lost
// after the server has acted. Reads are retried. A write is retried where the response to the retry shows whether the first one was carried
// out. For every other write the outcome is unknown, and the run repeats the spec with new objects.

const (
	// patience limits the retries of a request that failed because of the connection.
	patience = 10 * time.Second
	// throttledPatience limits the retries of a request that the server rejected because of load.
	throttledPatience = time.Minute
	// longestDelay limits the time between two attempts, even if the server requests more.
	longestDelay = 5 * time.Second
)

// delays returns the times between attempts.
func delays() wait.DelayFunc {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 7, Jitter: 0.1, Cap: 2 * time.Second}.DelayFunc()
}

// Send sends a request and retries it where that is safe. The response is not Authoritative when the outcome is unknown.
func (c *Client) Send(ctx context.Context, request Request) Response {
	request.absent = c.absent.has(request)
	response := c.sendWithRetries(ctx, request)
	c.absent.note(response)
	return response
}

func (c *Client) sendWithRetries(ctx context.Context, request Request) Response {
	// If the context ends before the first attempt, this must not look like a success.
	response := Response{Request: request.String(), Err: context.Cause(ctx), sent: request}
	var lost *Response
	delay, began := delays(), time.Now()
	for ctx.Err() == nil {
		response = c.SendOnce(ctx, request)
		if c.isFinal(response) || !response.HadNoEffect() && !c.isRetriable(ctx, &response) {
			break
		}
		if time.Since(began) > c.patienceWith(response) {
			c.failedWebhooks.note(response.failedWebhook())
			break
		}
		if !response.HadNoEffect() {
			unknown := response
			lost = &unknown
		}
		Wait(ctx, max(delay(), min(response.retryAfter(), longestDelay)))
	}
	if lost != nil {
		return c.afterLost(ctx, *lost, response)
	}
	return response
}

// FailsPersistently reports whether the server answers a request with a server error each time, as long as the patience lasts, although it
// serves another one in between. The request was refused a first time. That is no outage, but what the server does. Creates are left out,
// because they depend on more than the object, such as the encryption of its kind, and so are lists and what the API server asks of a node.
func (c *Client) FailsPersistently(ctx context.Context, refused Response, serves func(context.Context) bool) bool {
	request, delay, began := refused.sent, delays(), time.Now()
	lists := request.Method == http.MethodGet && request.Object != nil && request.Object.Name == ""
	creates := request.Method == http.MethodPost && request.Subresource == ""
	if !refused.failed() || !stores(request) || lists || creates {
		return false
	}
	for served := serves(ctx); time.Since(began) < c.patience; served = serves(ctx) {
		if Wait(ctx, delay()); !served || !c.SendOnce(ctx, request).failed() {
			return false
		}
	}
	return ctx.Err() == nil
}

// failed reports whether the server, or a proxy, answered with a server error.
func (r Response) failed() bool {
	return r.StatusCode >= http.StatusInternalServerError && !r.Authoritative()
}

// isFinal reports whether a retry would get the same response.
func (c *Client) isFinal(response Response) bool {
	return response.Authoritative() && !response.quotaIsBusy() || redirected(response.Err) || lacksCredentials(response.Err) ||
		IsNotOwned(response.Err) || c.failedWebhooks.has(response.failedWebhook())
}

// Wait returns after the duration, or when the context ends.
func Wait(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// patienceWith limits the retries of a request with this response.
func (c *Client) patienceWith(response Response) time.Duration {
	if response.throttled() || response.quotaIsBusy() {
		return throttledPatience
	}
	return c.patience
}

// throttled reports whether the server rejected the request because of load.
func (r Response) throttled() bool {
	return r.StatusCode == http.StatusTooManyRequests && !r.Authoritative()
}

// retryAfter is the delay that the server requests.
func (r Response) retryAfter() time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(r.Err)
	return time.Duration(seconds) * time.Second
}

// HadNoEffect reports whether a failed request cannot have changed anything: it is a read, it did not reach the server, or the server
// rejected it before handling it.
func (r Response) HadNoEffect() bool {
	return r.sent.Method == http.MethodGet || r.throttled() || r.quotaIsBusy() || NeverConnected(r.Err)
}

// Inconclusive reports whether an error is one of the connection, so that the server has not decided.
func Inconclusive(err error) bool {
	if meta.IsNoMatchError(err) {
		return false
	}
	response := Response{Err: err}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		response.StatusCode = int(status.Status().Code)
	}
	return !response.Authoritative()
}

// NeverConnected reports whether a request was not written to any connection.
func NeverConnected(err error) bool {
	broken := (*net.OpError)(nil)
	return errors.As(err, &broken) && broken.Op == "dial"
}

// isRetriable reports whether a write that may have been carried out can be retried. Evictions, deletecollections and JSON patches cannot,
// because a second one may do more than the first.
func (c *Client) isRetriable(ctx context.Context, response *Response) bool {
	request := response.sent
	switch {
	case c.isOfHarness(request), request.isDryRun() && !c.noWriteRetries:
		return true
	case c.noWriteRetries:
		return false
	}
	switch request.Method {
	case http.MethodPost:
		return request.storesNothing() || request.isCreate()
	case http.MethodPut:
		return request.object().GetResourceVersion() != "" // the retry conflicts with the first
	case http.MethodPatch:
		return request.ContentType != string(types.JSONPatchType)
	case http.MethodDelete:
		if request.absent {
			return true
		}
		object, alive, begun := c.readDeleted(ctx, request)
		if begun && request.Begins {
			*response = Response{Request: response.Request, sent: request, Object: object}
			return false
		}
		repeats := request.Repeats && begun && object != nil
		return (alive || repeats) && response.StatusCode != http.StatusGatewayTimeout // the server may still carry it out
	}
	return false
}

// readDeleted reads the object of a DELETE and reports whether it is alive, or terminating or gone (begun); neither when that is unknown.
// Without this read, specs that delete many objects would not finish within five attempts on a bad network.
func (c *Client) readDeleted(ctx context.Context, request Request) (object *Object, alive, begun bool) {
	if request.Object == nil || request.Object.Name == "" {
		return nil, false, false
	}
	read := c.current(ctx, request)
	switch {
	case apierrors.IsNotFound(read.Err):
		return nil, false, true
	case read.Err != nil:
		return nil, false, false
	case request.Object.UID != "" && request.Object.UID != read.Object.GetUID(): // another object has its name
		return nil, false, true
	}
	terminating := read.Object.GetDeletionTimestamp() != nil
	return read.Object, !terminating, terminating
}

// current reads the object of a request.
func (c *Client) current(ctx context.Context, request Request) Response {
	about, path := *request.Object, strings.TrimSuffix(request.Path, "/"+request.Subresource)
	if request.isCreate() {
		path += "/" + about.Name
	}
	return c.Send(ctx, Request{Method: http.MethodGet, Path: path, Object: &about})
}

// isOfHarness reports whether no spec checks the effects of a request, as with the canaries of barriers.
func (c *Client) isOfHarness(request Request) bool {
	return !c.recorded || request.Object != nil && request.Object.Canary
}

// isDryRun reports whether a request changes nothing.
func (r Request) isDryRun() bool {
	options, _ := r.Body.(metav1.DeleteOptions)
	return len(r.Query["dryRun"]) > 0 || len(options.DryRun) > 0
}

// storesNothing reports whether a POST creates a token or a review.
func (r Request) storesNothing() bool {
	return r.Subresource == "token" || reviews(r)
}

// isCreate reports whether a request creates an object with a given name.
func (r Request) isCreate() bool {
	return r.Method == http.MethodPost && r.Subresource == "" && r.Object != nil && r.Object.Name != "" && !r.storesNothing()
}

// object returns the object in the request's body.
func (r Request) object() *Object {
	content, _ := r.Body.(map[string]any)
	return &Object{Object: content}
}

// afterLost returns the response to a write whose first response was lost and that was retried. It returns the lost one when the response
// to the retry does not show whether the first request was carried out.
func (c *Client) afterLost(ctx context.Context, lost, retried Response) Response {
	request := retried.sent
	recreated := request.Method == http.MethodPatch && retried.StatusCode == http.StatusCreated // by an apply, after the first one removed the object
	switch {
	case retried.Err == nil && !recreated || !retried.Authoritative():
		return retried
	case request.isCreate() && apierrors.IsAlreadyExists(retried.Err):
		if read := c.current(ctx, request); read.Err == nil && !slices.Contains(request.Before, read.Object.GetUID()) {
			return read.inferredFor(retried, http.StatusCreated)
		}
	case request.Method == http.MethodPut && apierrors.IsConflict(retried.Err):
		sent := request.object()
		switch read := c.current(ctx, request); {
		case read.Err == nil && sameContent(sent, read.Object, request.Subresource):
			return read.inferredFor(retried, http.StatusOK)
		case read.Err == nil && sent.GetUID() != "" && sent.GetUID() != read.Object.GetUID(): // the update was for an earlier object
			return retried
		}
	case c.isOfHarness(request) && request.Method == http.MethodDelete && apierrors.IsNotFound(retried.Err):
		return Response{Request: retried.Request, StatusCode: http.StatusOK, sent: request}
	case c.isOfHarness(request) || request.isDryRun() || request.storesNothing():
		return retried
	case !recreated && !request.isCreate() && c.isDecisive(ctx, retried):
		return retried
	}
	lost.Err = fmt.Errorf("unknown whether the request was carried out: %w", lost.Err)
	return lost
}

// isDecisive reports whether the rejection of a retry, together with the current object, shows that the first request was rejected too.
func (c *Client) isDecisive(ctx context.Context, retried Response) bool {
	request, missing, conflict := retried.sent, apierrors.IsNotFound(retried.Err), apierrors.IsConflict(retried.Err)
	read := c.current(ctx, request)
	switch {
	case request.absent && apierrors.IsNotFound(read.Err):
		return true // the object does not exist, before or after
	case read.Err != nil:
		return false
	case missing:
		return request.Subresource != "" // the object exists, so the kind has no such subresource
	case conflict && request.Method == http.MethodDelete: // its preconditions are not met
		return read.Object.GetDeletionTimestamp() == nil && (request.Object.UID == "" || request.Object.UID == read.Object.GetUID())
	}
	return !conflict && request.Method == http.MethodPatch
}

// inferredFor returns the response to a write, as inferred from a read.
func (r Response) inferredFor(write Response, statusCode int) Response {
	r.Request, r.sent, r.StatusCode, r.inferred = write.Request, write.sent, statusCode, true
	return r
}

// sameContent reports whether the stored object equals the object of an update, except for fields of the server and other managers.
func sameContent(sent, stored *Object, subresource string) bool {
	if subresource == "status" {
		return equality.Semantic.DeepEqual(sent.Object["status"], stored.Object["status"])
	}
	content := func(object *Object) map[string]any {
		copied := object.DeepCopy().Object
		for _, field := range [][]string{{"status"}, {"metadata", "resourceVersion"}, {"metadata", "managedFields"}, {"metadata", "generation"}} {
			unstructured.RemoveNestedField(copied, field...)
		}
		return copied
	}
	return subresource == "" && equality.Semantic.DeepEqual(content(sent), content(stored))
}
