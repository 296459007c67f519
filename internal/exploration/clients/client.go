// Package clients turns the intents of a program into requests, and records them with their responses as the model knows these.
package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// ErrSkipped is the error of a cluster that a scenario cannot explore.
var ErrSkipped = errors.New("the scenario cannot run")

// Actor is one client of a round: it sends requests, and remembers what it has seen.
type Actor struct {
	*Round
	with   *client.Client
	number int
	// seen is the last state of each object that it has seen, and list the resourceVersion of its last list.
	seen map[string]*client.Object
	list string
	// Requests are those that it has sent.
	Requests []history.Request
}

// New is a client of a round, with its number.
func New(round *Round, with *client.Client, number int) *Actor {
	return &Actor{Round: round, with: with, number: number, seen: map[string]*client.Object{}}
}

// Request is a request as it is sent, and as the model sees it.
type Request struct {
	Object    *client.Object
	http      client.Request
	recorded  history.Request
	collected bool
}

// Do carries out one intent with one request. It fails with ErrSkipped where the cluster does not permit that.
func Do(ctx context.Context, a *Actor, intent generate.Intent) error {
	return a.Send(ctx, a.Prepare(intent))
}

// Send sends a request and records it with its response. It fails as Do does.
func (a *Actor) Send(ctx context.Context, r Request) error {
	r.recorded.Client, r.recorded.Call = a.number, time.Since(a.Began)
	response := a.with.DoOnce(ctx, r.Object, r.http)
	if r.collected && r.http.Method == http.MethodGet {
		response = a.pages(ctx, &r, response)
	}
	r.recorded.Return = time.Since(a.Began)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return a.note(r, response)
}

// Prepare turns an intent into a request. What it requires is what the client has seen last.
func (a *Actor) Prepare(intent generate.Intent) Request {
	if intent.Object < 0 {
		return a.aboutCollection(intent)
	}
	name := a.Names[intent.Object]
	r := Request{Object: Named(a.Manifest, name, a.Selected()), recorded: history.Request{Name: name}}
	if home := a.Homes[name]; home != "" {
		r.Object.SetNamespace(home)
	}
	intent.Change.Owners = a.resolve(intent.Change.Owners)
	operation := model.Operation{Verb: intent.Verb, DryRun: intent.DryRun, Change: intent.Change, Policy: intent.Policy}
	seen, known := a.seen[name]
	operation.Grace = intent.Grace
	traced := !a.Stale && intent.UID
	if traced {
		operation.UID = a.uid(name)
	}
	if operation.Verb == model.UpdateStatus && !known || traced && operation.UID == "" {
		operation = model.Operation{Verb: model.Get}
	}
	if known && intent.ResourceVersion {
		operation.ResourceVersion = seen.GetResourceVersion()
	}
	if known && intent.UID && !traced {
		operation.UID = string(seen.GetUID())
	}
	r.http = a.httpRequest(r.Object, seen, &operation, intent)
	if r.http.Query == nil {
		r.http.Query = url.Values{}
	}
	if operation.Verb == model.Get {
		r.read(a.version(intent.Read, seen))
	}
	if intent.DryRun && operation.Verb != model.Delete {
		r.http.Query.Set("dryRun", metav1.DryRunAll)
	}
	r.recorded.Operation = operation
	return r
}

// About is a get, a delete or a patch of any object of the run, with the name that it has in the history.
func About(name string, object *client.Object, operation model.Operation) Request {
	sent := client.Request{Method: http.MethodGet}
	switch operation.Verb {
	case model.Delete:
		sent = client.Request{Method: http.MethodDelete, Body: deleteOptions(operation, generate.Intent{Grace: operation.Grace})}
	case model.Patch:
		sent = mergePatch((&Round{}).mergePatch(operation.Change, operation.ResourceVersion))
	}
	return As(name, object, operation, sent)
}

// As is any request about an object, with the name and the operation that it has in the history.
func As(name string, object *client.Object, operation model.Operation, sent client.Request) Request {
	return Request{Object: object, http: sent, recorded: history.Request{Name: name, Operation: operation}}
}

// ReleaseRequest removes the finalizer that an object was created with.
func ReleaseRequest() client.Request {
	return client.Request{Method: http.MethodPatch, Body: release(), ContentType: string(types.JSONPatchType)}
}

func mergePatch(body map[string]any) client.Request {
	return client.Request{Method: http.MethodPatch, Body: body, ContentType: string(types.MergePatchType)}
}

// httpRequest is the request for an operation on an object that was seen before, or not if that is nil.
func (a *Actor) httpRequest(object, seen *client.Object, operation *model.Operation, intent generate.Intent) client.Request {
	switch operation.Verb {
	case model.Create:
		a.write(object, intent.Change)
		return client.Request{Method: http.MethodPost, Body: object.Object}
	case model.Update, model.UpdateStatus:
		sent := object
		if seen != nil {
			sent = seen.DeepCopy()
			sent.SetManagedFields(nil)
		}
		a.write(sent, intent.Change)
		if operation.ResourceVersion == "" {
			sent.SetResourceVersion("")
			sent.SetUID(types.UID(operation.UID))
		}
		if operation.Verb == model.UpdateStatus {
			return client.Request{Method: http.MethodPut, Body: sent.Object, Subresource: "status"}
		}
		written := watching.Snapshot(sent) // a PUT writes every field
		operation.Change = model.Change{Label: &written.Label, Value: &written.Value, Finalizers: &written.Finalizers, Owners: &written.Owners}
		return client.Request{Method: http.MethodPut, Body: sent.Object}
	case model.Patch:
		if intent.Release {
			return ReleaseRequest()
		}
		return mergePatch(a.mergePatch(intent.Change, operation.ResourceVersion))
	case model.Apply:
		a.write(object, intent.Change)
		return client.Request{
			Method: http.MethodPatch, Body: object.Object, ContentType: string(types.ApplyPatchType),
			Query: url.Values{"fieldManager": {client.Domain + "-apply"}, "force": {"true"}},
		}
	case model.Delete:
		return client.Request{Method: http.MethodDelete, Body: deleteOptions(*operation, intent)}
	}
	return client.Request{Method: http.MethodGet}
}

func deleteOptions(operation model.Operation, intent generate.Intent) metav1.DeleteOptions {
	options := metav1.DeleteOptions{GracePeriodSeconds: intent.Grace, PropagationPolicy: orNil(metav1.DeletionPropagation(operation.Policy))}
	if operation.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if operation.UID != "" || operation.ResourceVersion != "" {
		options.Preconditions = &metav1.Preconditions{UID: orNil(types.UID(operation.UID)), ResourceVersion: orNil(operation.ResourceVersion)}
	}
	return client.WithKind(options)
}

func orNil[T ~string](value T) *T {
	if value == "" {
		return nil
	}
	return &value
}

// aboutCollection is a list or a deletecollection.
func (a *Actor) aboutCollection(intent generate.Intent) Request {
	operation := model.Operation{Verb: intent.Verb, Label: intent.Label, DryRun: intent.DryRun, Policy: intent.Policy}
	r := Request{Object: a.Manifest.DeepCopy(), collected: true, recorded: history.Request{Operation: operation}}
	r.Object.SetName("")
	selector := a.Selected()
	if intent.Label != "" {
		selector[watching.StateLabel] = intent.Label
	}
	r.http = client.Request{Method: http.MethodGet, Query: url.Values{"labelSelector": {selector.String()}}}
	if intent.Verb == model.Delete {
		r.http.Method, r.http.Body = http.MethodDelete, deleteOptions(operation, intent)
		return r
	}
	r.read(a.version(intent.Read, nil))
	if matches := map[generate.Read]metav1.ResourceVersionMatch{
		generate.NotOlderThan: metav1.ResourceVersionMatchNotOlderThan, generate.Exact: metav1.ResourceVersionMatchExact,
	}; r.recorded.Version != "" && matches[intent.Read] != "" {
		r.recorded.Match = string(matches[intent.Read])
		r.http.Query.Set("resourceVersionMatch", r.recorded.Match)
	}
	if intent.Limit > 0 {
		r.http.Query.Set("limit", strconv.Itoa(intent.Limit))
	}
	return r
}

// version is the resourceVersion parameter of a read; empty where the client has seen none yet.
func (a *Actor) version(read generate.Read, seen *client.Object) string {
	switch {
	case read == generate.Any:
		return "0"
	case read == generate.NotOlderThan && seen != nil:
		return seen.GetResourceVersion()
	case read == generate.NotOlderThan, read == generate.Exact:
		return a.list
	}
	return ""
}

// read sets the resourceVersion parameter, unless that is empty.
func (r *Request) read(version string) {
	if r.recorded.Version = version; version != "" {
		r.http.Query.Set("resourceVersion", version)
	}
}

// pages reads the other pages of a list, and returns the last response.
func (a *Actor) pages(ctx context.Context, r *Request, response client.Response) client.Response {
	r.recorded.Listing = &history.Listing{Objects: map[string]model.Object{}}
	for {
		next := a.noteListing(r.recorded.Listing, response)
		if next == "" {
			return response
		}
		continued := r.http
		continued.Query = url.Values{
			"labelSelector": r.http.Query["labelSelector"], "limit": r.http.Query["limit"], "continue": {next},
		}
		response = a.with.DoOnce(ctx, r.Object, continued)
	}
}

// noteListing adds a page to a listing, and returns what the next one continues with.
func (a *Actor) noteListing(listing *history.Listing, response client.Response) (next string) {
	if response.Err != nil || response.Object == nil || !response.Object.IsList() {
		return ""
	}
	list, err := response.Object.ToList()
	if err != nil {
		return ""
	}
	listing.Versions = append(listing.Versions, list.GetResourceVersion())
	for i := range list.Items {
		listing.Objects[list.Items[i].GetName()] = watching.Snapshot(&list.Items[i])
	}
	return list.GetContinue()
}

// Seen is the last state of an object that the client has seen; empty if it has seen none.
func (a *Actor) Seen(name string) model.Object {
	if seen, known := a.seen[name]; known {
		return watching.Snapshot(seen)
	}
	return model.Object{}
}

// Record does something that is no request, and records it as an operation on what the history calls by a name.
func (a *Actor) Record(name string, verb model.Verb, do func() error) error {
	call := time.Since(a.Began)
	if err := do(); err != nil {
		return err
	}
	a.Requests = append(a.Requests, history.Request{
		Client: a.number, Call: call, Return: time.Since(a.Began), Name: name, Operation: model.Operation{Verb: verb}, Outcome: model.Outcome{Code: http.StatusOK},
	})
	return nil
}

// note records a request with its response. A read that failed, and a write that the server did not look at, show nothing.
func (a *Actor) note(r Request, response client.Response) error {
	reads := r.http.Method == http.MethodGet
	switch {
	case client.IsNotOwned(response.Err):
		return response.Err
	case response.Err != nil && response.Forbidden() && !reads && response.StatusCode == http.StatusForbidden &&
		!apierrors.HasStatusCause(response.Err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w: %s: %w", ErrSkipped, response.Request, response.Err)
	case !response.Authoritative() && response.HadNoEffect(), reads && r.recorded.Version != "" && response.Err != nil, reads && r.collected && response.Err != nil:
		return nil //nolint:nilerr // such a response shows nothing
	case response.Authoritative():
		r.recorded.Outcome.Code = response.StatusCode
	}
	if shown := response.Object; shown != nil && response.Err == nil && shown.GetKind() == r.Object.GetKind() {
		r.recorded.Outcome.Object = new(watching.Snapshot(shown))
		if !r.recorded.Operation.DryRun {
			a.seen[r.recorded.Name] = shown
		}
	}
	if r.collected && !reads && response.Err == nil && response.Object != nil && response.Object.IsList() {
		r.recorded.Listing = &history.Listing{Objects: map[string]model.Object{}}
		a.noteListing(r.recorded.Listing, response)
	}
	if listing := r.recorded.Listing; reads && listing != nil && len(listing.Versions) > 0 {
		a.list = listing.Versions[0]
	}
	a.Requests = append(a.Requests, r.recorded)
	return nil
}

// Listed is a list of the most recent state that no client of a round has read, with its resourceVersion and when it was sent and answered.
func Listed(objects []*client.Object, version string, call, end time.Duration) history.Request {
	listing := &history.Listing{Versions: []string{version}, Objects: map[string]model.Object{}}
	for _, object := range objects {
		listing.Objects[object.GetName()] = watching.Snapshot(object)
	}
	return history.Request{
		Call: call, Return: end, Operation: model.Operation{Verb: model.Select}, Outcome: model.Outcome{Code: http.StatusOK}, Listing: listing,
	}
}
