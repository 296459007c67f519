package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
	"k8s.io/utils/ptr"
)

// The way to a server fails at times: it is throttled, a connection breaks, something between answers with an error of its
// own, or a response is lost although the server has acted. What only reads is then sent again. A write is sent again where
// that cannot change what a spec judges; otherwise it is not known what was done, and the spec cannot be judged.

const (
	// patience is how long trouble on the way is borne with.
	patience = 10 * time.Second
	// throttledPatience is how long it is waited for a server that is too busy to look at a request.
	throttledPatience = time.Minute
	// longestPause bounds the time between two tries, also where the server asks for a longer one.
	longestPause = 5 * time.Second
)

// pauses are the times between tries.
func pauses() wait.DelayFunc {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 7, Jitter: 0.1, Cap: 2 * time.Second}.DelayFunc()
}

// Send sends a request, and sends it again where the way to the server fails and doing it twice changes nothing, or where it was
// not done. The response is not Authoritative where it is not known what was done.
func (c *Client) Send(ctx context.Context, request Request) Response {
	request.absent = c.absent.has(request)
	response := c.send(ctx, request)
	c.absent.note(response)
	return response
}

// send is Send, for one who notes what it says of whether the object is there.
func (c *Client) send(ctx context.Context, request Request) Response {
	// What stands when the context is over before the first try: not a success without an object.
	response := Response{Request: request.String(), Err: context.Cause(ctx), sent: request}
	var lost *Response
	pause, began := pauses(), time.Now()
	for ctx.Err() == nil {
		response = c.SendOnce(ctx, request)
		if lost != nil && response.Authoritative() {
			return c.reconcile(ctx, *lost, response)
		}
		if response.Authoritative() && !response.quotaIsBusy() || redirected(response.Err) || IsNotOwned(response.Err) || c.failedWebhooks.has(response.failedWebhook()) {
			break
		}
		if time.Since(began) > c.patienceWith(response) {
			c.failedWebhooks.note(response.failedWebhook())
			break
		}
		if !response.notDone() {
			if request.Begins {
				if terminating, begun := c.begun(ctx, request); begun {
					return Response{Request: response.Request, sent: request, Object: terminating}
				}
			}
			if !c.repeatable(ctx, response) {
				break
			}
			unanswered := response
			lost = &unanswered
		}
		Pass(ctx, max(pause(), min(response.retryAfter(), longestPause)))
	}
	if lost != nil && response.notDone() {
		return *lost
	}
	return response
}

// Pass lets time pass, or less when the context ends before.
func Pass(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// patienceWith is how long a request is sent again that is answered so.
func (c *Client) patienceWith(response Response) time.Duration {
	if response.throttled() || response.quotaIsBusy() {
		return throttledPatience
	}
	return c.patience
}

// throttled says that the server was too busy to look at the request.
func (r Response) throttled() bool {
	return r.StatusCode == http.StatusTooManyRequests && !r.Authoritative()
}

// retryAfter is how long the server asks to wait.
func (r Response) retryAfter() time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(r.Err)
	return time.Duration(seconds) * time.Second
}

// notDone says of a request that was not granted that nothing can have been done: it reads, it never reached the server, or it
// was turned away before anybody looked at it.
func (r Response) notDone() bool {
	return r.sent.Method == http.MethodGet || r.throttled() || r.quotaIsBusy() || NeverConnected(r.Err)
}

// Inconclusive says of an error that it is trouble on the way to the server, and not what the server decided.
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

// NeverConnected says that a request was not written to any connection.
func NeverConnected(err error) bool {
	broken := (*net.OpError)(nil)
	return errors.As(err, &broken) && broken.Op == "dial"
}

// repeatable says whether a write may be sent again that may have been done already.
func (c *Client) repeatable(ctx context.Context, response Response) bool {
	request := response.sent
	switch {
	case !c.judges(request):
		return true
	case c.once:
		return false
	case request.isDryRun():
		return true
	}
	switch request.Method {
	case http.MethodPost:
		if request.Subresource == "eviction" {
			return response.StatusCode != http.StatusGatewayTimeout && c.untouched(ctx, request)
		}
		return request.asks() || request.Subresource == "" && request.Object != nil && request.Object.Name != "" // which is new; see reconcile
	case http.MethodPut:
		return request.object().GetResourceVersion() != "" // by which the server tells a second one
	case http.MethodPatch:
		return request.ContentType != string(types.JSONPatchType) // the others say what is to be, not what is to change
	case http.MethodDelete:
		return request.absent || response.StatusCode != http.StatusGatewayTimeout &&
			(c.untouched(ctx, request) || request.Repeats && c.terminates(ctx, request))
	}
	return false
}

// judges says whether a spec looks at what a request does. The canaries of barriers are the harness's own.
func (c *Client) judges(request Request) bool {
	return c.judged && (request.Object == nil || !request.Object.Canary)
}

// isDryRun says that a request changes nothing.
func (r Request) isDryRun() bool {
	options, _ := r.Body.(metav1.DeleteOptions)
	return len(r.Query["dryRun"]) > 0 || len(options.DryRun) > 0
}

// asks says that a request asks something and stores nothing, though it is a POST: for a token, or for a review.
func (r Request) asks() bool {
	return r.Subresource == "token" || r.Object != nil && strings.HasSuffix(r.Object.Resource, "reviews")
}

// object is the object that a request sends.
func (r Request) object() *Object {
	content, _ := r.Body.(map[string]any)
	return &Object{Object: content}
}

// untouched says that the object of a request is there, or objects of its collection are, and that nobody has asked for their
// deletion. It is false where that is not known.
func (c *Client) untouched(ctx context.Context, request Request) bool {
	if request.Object == nil {
		return false
	}
	if request.Object.Name == "" {
		return c.allUntouched(ctx, request)
	}
	read := c.read(ctx, request)
	return read.Err == nil && read.Object != nil && !isTerminating(read.Object) && request.isAbout(read.Object)
}

// isAbout says that an object is the one that a request means, and not one that has its name now, as far as the request says.
func (r Request) isAbout(object *Object) bool {
	meant := r.Object.UID
	if options, _ := r.Body.(metav1.DeleteOptions); meant == "" && options.Preconditions != nil {
		meant = ptr.Deref(options.Preconditions.UID, "")
	}
	return meant == "" || meant == object.GetUID()
}

// allUntouched says that there are objects of a collection that a request selects, and that nobody has asked for the deletion of
// any. It is false for a request that takes some of them only, as those are gone that it took.
func (c *Client) allUntouched(ctx context.Context, request Request) bool {
	if request.Query.Has("limit") {
		return false
	}
	query := url.Values{"labelSelector": request.Query["labelSelector"], "fieldSelector": request.Query["fieldSelector"]}
	objects, _, response := c.Send(ctx, Request{Method: http.MethodGet, Path: request.Path, Object: request.Object, Query: query}).page()
	return response.Err == nil && len(objects) > 0 && !slices.ContainsFunc(objects, isTerminating)
}

func isTerminating(object *Object) bool { return object.GetDeletionTimestamp() != nil }

// terminates says that the object of a request is still there, and terminating. It is false where that is not known.
func (c *Client) terminates(ctx context.Context, request Request) bool {
	read := c.read(ctx, request)
	return read.Err == nil && read.Object != nil && isTerminating(read.Object) && read.Object.GetUID() == request.Object.UID
}

// begun says that the object of a request is terminating, and returns it, or that it is not there any more. It is false
// where that is not known.
func (c *Client) begun(ctx context.Context, request Request) (*Object, bool) {
	read := c.read(ctx, request)
	switch {
	case apierrors.IsNotFound(read.Err):
		return nil, true
	case read.Err != nil || read.Object == nil:
		return nil, false
	case !request.isAbout(read.Object):
		return nil, true
	}
	return read.Object, isTerminating(read.Object)
}

// read reads the object that a request is about.
func (c *Client) read(ctx context.Context, request Request) Response {
	about, path := *request.Object, strings.TrimSuffix(request.Path, "/"+request.Subresource)
	if request.Method == http.MethodPost && request.Subresource == "" {
		path += "/" + about.Name
	}
	return c.Send(ctx, Request{Method: http.MethodGet, Path: path, Object: &about})
}

// reconcile makes one response of the one that was lost and the one that came when the request was sent again: what the first
// one would have been. It is the lost one where that is not known.
func (c *Client) reconcile(ctx context.Context, lost, again Response) Response {
	lost.Err = fmt.Errorf("it is not known whether it was done: %w", lost.Err)
	request := again.sent
	switch {
	case request.Method == http.MethodPost && request.Subresource == "" && !request.asks() && again.Err != nil:
		return c.created(ctx, lost, again)
	case request.Subresource != "" && apierrors.IsNotFound(again.Err) && c.read(ctx, request).Err == nil:
		return again // the object is there, so it is the subresource that is not
	case request.Method == http.MethodDelete && apierrors.IsNotFound(again.Err) && (request.Begins || !c.judges(request)):
		again.Err, again.StatusCode, again.inferred = nil, http.StatusOK, true
		return again
	case request.absent && again.Err != nil && apierrors.IsNotFound(c.read(ctx, request).Err):
		return again
	case request.Method == http.MethodPut && (apierrors.IsConflict(again.Err) || apierrors.IsNotFound(again.Err)):
		return c.written(ctx, lost, again)
	case request.Method == http.MethodDelete && apierrors.IsConflict(again.Err) && c.untouched(ctx, request):
		return again
	case apierrors.IsNotFound(again.Err) || apierrors.IsConflict(again.Err):
		return lost
	case request.Method == http.MethodPatch && again.Err != nil && c.read(ctx, request).Err != nil:
		return lost // it may have been refused for what the first one did: an apply that lets an object go would then create one
	}
	return again
}

// created finds out whether a create was done whose response was lost, after a second one was refused: for the name
// that the first one took, or for an address, as that is allocated before the name is looked at.
func (c *Client) created(ctx context.Context, lost, again Response) Response {
	read := c.read(ctx, again.sent)
	switch {
	case read.Err == nil && !slices.Contains(again.sent.Before, read.Object.GetUID()):
		return read.insteadOf(again, http.StatusCreated)
	case apierrors.IsNotFound(read.Err) && !apierrors.IsAlreadyExists(again.Err):
		return again
	}
	return lost
}

// written finds out whether an update was done whose response was lost, of which the server does not accept a second one.
func (c *Client) written(ctx context.Context, lost, again Response) Response {
	sent := again.sent.object()
	switch read := c.read(ctx, again.sent); {
	case read.Err == nil && sameContent(sent, read.Object, again.sent.Subresource):
		return read.insteadOf(again, http.StatusOK)
	case read.Err == nil && sent.GetUID() != "" && sent.GetUID() != read.Object.GetUID():
		return again // it is not about the object that is there
	case apierrors.IsNotFound(read.Err) && sent.GetDeletionTimestamp() != nil && len(sent.GetFinalizers()) == 0:
		read.Object, read.Err = sent, nil // it went because nothing held it any more
		return read.insteadOf(again, http.StatusOK)
	}
	return lost
}

// insteadOf is what a read shows, as the response to a write.
func (r Response) insteadOf(write Response, statusCode int) Response {
	r.Request, r.sent, r.StatusCode, r.inferred = write.Request, write.sent, statusCode, true
	return r
}

// sameContent says whether an object is as an update has sent it, or a subresource of it: apart from what the server counts, and
// what others write.
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
