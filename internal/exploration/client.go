package exploration

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// actor is one client of a round: it carries out a program, and remembers what it has seen.
type actor struct {
	*Driver
	with   *client.Client
	number int
	round  round
	// seen is the last state of each object that it has seen, and list the resourceVersion of its last list.
	seen map[string]*client.Object
	list string
	// requests are those that it has sent.
	requests []history.Request
}

// round is a round that goes on: its number, and when it began.
type round struct {
	number int
	names  []string
	began  time.Time
	// homes are the namespaces of the objects by their names; nil if all are in that of the run.
	homes map[string]string
}

// labels are on the round's objects.
func (r round) labels() map[string]string {
	return map[string]string{roundLabel: strconv.Itoa(r.number)}
}

// request is a request as it is sent, and as the model sees it.
type request struct {
	object    *client.Object
	http      client.Request
	recorded  history.Request
	collected bool
}

// do carries out one intent. It fails with ErrSkipped where the cluster does not permit that.
func (a *actor) do(ctx context.Context, intent generate.Intent) error {
	if intent.ClusterOwner && a.clusterOwner == nil {
		return nil
	}
	client.Wait(ctx, intent.Pause)
	return a.send(ctx, a.prepare(intent))
}

// send sends a request and records it with its response.
func (a *actor) send(ctx context.Context, r request) error {
	r.recorded.Client, r.recorded.Call = a.number, time.Since(a.round.began)
	response := a.with.DoOnce(ctx, r.object, r.http)
	if r.collected && r.http.Method == http.MethodGet {
		response = a.pages(ctx, &r, response)
	}
	r.recorded.Return = time.Since(a.round.began)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return a.note(r, response)
}

// prepare turns an intent into a request. What it requires is what the client has seen last.
func (a *actor) prepare(intent generate.Intent) request {
	if intent.Object < 0 {
		return a.aboutCollection(intent)
	}
	name := a.round.names[intent.Object]
	if intent.Namespace {
		return about(fixtures.Namespace(a.round.homes[name]), model.Operation{Verb: intent.Verb})
	}
	if intent.ClusterOwner {
		return about(a.clusterOwner, model.Operation{Verb: intent.Verb, Policy: intent.Policy, UID: string(a.clusterOwner.GetUID())})
	}
	r := request{object: a.named(name, a.round.labels()), recorded: history.Request{Name: name}}
	if home := a.round.homes[name]; home != "" {
		r.object.SetNamespace(home)
	}
	intent.Change.Owners = a.resolve(intent.Change.Owners)
	operation := model.Operation{Verb: intent.Verb, DryRun: intent.DryRun, Change: intent.Change, Policy: intent.Policy}
	seen, known := a.seen[name]
	operation.Grace = intent.Grace
	traced := a.scenario != Objects && intent.UID // what clients delete is known by its uid
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
	r.http = a.httpRequest(r.object, seen, &operation, intent)
	if operation.Verb == model.Get {
		r.recorded.Version = a.version(intent.Read, seen)
		r.http.Query = query("resourceVersion", r.recorded.Version)
	}
	if intent.DryRun && operation.Verb != model.Delete {
		if r.http.Query == nil {
			r.http.Query = url.Values{}
		}
		r.http.Query.Set("dryRun", metav1.DryRunAll)
	}
	r.recorded.Operation = operation
	return r
}

// about is a get or a delete of an object that is not one of the round's.
func about(object *client.Object, operation model.Operation) request {
	r := request{object: object, http: client.Request{Method: http.MethodGet}, recorded: history.Request{Name: object.GetName(), Operation: operation}}
	if operation.Verb == model.Delete {
		r.http = client.Request{Method: http.MethodDelete, Body: deleteOptions(operation, generate.Intent{})}
	}
	return r
}

// httpRequest is the request for an operation on an object that was seen before, or not if that is nil.
func (a *actor) httpRequest(object, seen *client.Object, operation *model.Operation, intent generate.Intent) client.Request {
	switch operation.Verb {
	case model.Create:
		a.write(object, intent.Change)
		switch a.scenario { //nolint:exhaustive // others have no pods
		case Grace:
			bindToGhost(object, intent.Unscheduled)
			fallthrough
		case Nodes:
			terminateWithin(object, intent.Grace)
		}
		return client.Request{Method: http.MethodPost, Body: object.Object}
	case model.Update, model.UpdateStatus:
		sent := object
		if seen != nil {
			sent = withoutManagedFields(seen)
		}
		a.write(sent, intent.Change)
		if operation.ResourceVersion == "" {
			withoutVersion(sent, operation.UID != "")
		}
		if operation.Verb == model.UpdateStatus {
			return client.Request{Method: http.MethodPut, Body: sent.Object, Subresource: "status"}
		}
		operation.Change = all(sent)
		return client.Request{Method: http.MethodPut, Body: sent.Object}
	case model.Patch:
		if intent.Release {
			return client.Request{Method: http.MethodPatch, Body: release(), ContentType: string(types.JSONPatchType)}
		}
		return client.Request{
			Method: http.MethodPatch, Body: a.mergePatch(intent.Change, operation.ResourceVersion), ContentType: string(types.MergePatchType),
		}
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
	options := metav1.DeleteOptions{GracePeriodSeconds: intent.Grace}
	if operation.Policy != "" {
		options.PropagationPolicy = new(metav1.DeletionPropagation(operation.Policy))
	}
	if operation.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if operation.UID != "" || operation.ResourceVersion != "" {
		options.Preconditions = &metav1.Preconditions{}
	}
	if operation.UID != "" {
		options.Preconditions.UID = new(types.UID(operation.UID))
	}
	if operation.ResourceVersion != "" {
		options.Preconditions.ResourceVersion = &operation.ResourceVersion
	}
	return client.WithKind(options)
}

// aboutCollection is a list or a deletecollection.
func (a *actor) aboutCollection(intent generate.Intent) request {
	operation := model.Operation{Verb: intent.Verb, Label: intent.Label, DryRun: intent.DryRun, Policy: intent.Policy}
	r := request{object: a.manifest.DeepCopy(), collected: true, recorded: history.Request{Operation: operation}}
	r.object.SetName("")
	selector := labels.Merge(a.settings.Labels(), a.round.labels())
	if intent.Label != "" {
		selector[watching.StateLabel] = intent.Label
	}
	r.http = client.Request{Method: http.MethodGet, Query: url.Values{"labelSelector": {selector.String()}}}
	if intent.Verb == model.Delete {
		r.http.Method, r.http.Body = http.MethodDelete, deleteOptions(operation, intent)
		return r
	}
	r.recorded.Version = a.version(intent.Read, nil)
	if r.recorded.Version != "" {
		r.http.Query.Set("resourceVersion", r.recorded.Version)
	}
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
func (a *actor) version(read generate.Read, seen *client.Object) string {
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

func query(name, value string) url.Values {
	if value == "" {
		return nil
	}
	return url.Values{name: {value}}
}

// pages reads the other pages of a list, and returns the last response.
func (a *actor) pages(ctx context.Context, r *request, response client.Response) client.Response {
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
		response = a.with.DoOnce(ctx, r.object, continued)
	}
}

// noteListing adds a page to a listing, and returns what the next one continues with.
func (a *actor) noteListing(listing *history.Listing, response client.Response) (next string) {
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

// note records a request with its response. A read that failed, and a write that the server did not look at, show nothing.
func (a *actor) note(r request, response client.Response) error {
	reads := r.http.Method == http.MethodGet
	switch {
	case client.IsNotOwned(response.Err):
		return response.Err
	case response.Err != nil && response.Forbidden() && !reads && response.StatusCode == http.StatusForbidden && !isTerminating(response.Err):
		return fmt.Errorf("%w: %s: %w", ErrSkipped, response.Request, response.Err)
	case !response.Authoritative() && response.HadNoEffect(), reads && r.recorded.Version != "" && response.Err != nil, reads && r.collected && response.Err != nil:
		return nil //nolint:nilerr // such a response shows nothing
	case response.Authoritative():
		r.recorded.Outcome.Code = response.StatusCode
	}
	if shown := response.Object; shown != nil && response.Err == nil && shown.GetKind() == r.object.GetKind() {
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
	a.requests = append(a.requests, r.recorded)
	return nil
}
