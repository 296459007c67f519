package framework

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// writing returns the client for writes. If webhooks of the spec count requests, it does not retry after a lost response.
func (c *Cluster) writing() *client.Client {
	if len(c.reviewers) > 0 {
		return c.client.WithoutWriteRetries()
	}
	return c.client
}

// Send sends a request for an object or one of its subresources.
func (c *Cluster) Send(ctx context.Context, object *Object, request Request) Response {
	ginkgo.GinkgoHelper()
	return c.Check(ctx, c.do(ctx, object, request))
}

// do sends a request for an object, as a dry-run if the cluster is one.
func (c *Cluster) do(ctx context.Context, object *Object, request Request) Response {
	if c.dryRun && request.Method != http.MethodGet {
		dry := client.DryRun()
		maps.Copy(dry, request.Query)
		request.Query = dry
	}
	return c.writing().Do(ctx, object, request)
}

// ExpectDeletions records that something other than the spec's own requests may delete its objects, such as kubectl.
func (c *Cluster) ExpectDeletions() { c.deletions.sweep() }

// Delete deletes an object. If the response is lost, the object shows whether it was carried out. A delete that requires the object's
// resourceVersion is repeated with the next one if only other managers have written to the object since.
func (c *Cluster) Delete(ctx context.Context, object *Object, options ...DeleteOption) {
	ginkgo.GinkgoHelper()
	response := c.delete(ctx, object, options, true)
	for apierrors.IsConflict(response.Err) && deletion(options).requiresVersionOf(object) {
		if object = c.rebased(ctx, object); object == nil {
			break
		}
		options = append(slices.Clone(options), IfVersion(object.GetResourceVersion()))
		response = c.delete(ctx, object, options, true)
	}
	Require(response)
}

// TryDelete is Delete, but returns the response, which may be a refusal. It ends the spec as errored when the response is lost.
func (c *Cluster) TryDelete(ctx context.Context, object *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	return c.delete(ctx, object, options, false)
}

// delete deletes an object. If the spec does not check the response and it is lost, the object shows whether it was carried out.
func (c *Cluster) delete(ctx context.Context, object *Object, options []DeleteOption, unseen bool) Response {
	ginkgo.GinkgoHelper()
	request := c.deletionOf(ctx, object, options)
	response := c.do(ctx, object, Request{
		Method: http.MethodDelete, Query: request.query(), Body: request.body(), ContentType: request.ContentType,
		Begins: unseen && c.deletions.begins(object), Repeats: c.deletions.repeats(object),
	})
	if c.dryRun || request.isDryRun() {
		return c.Check(ctx, response)
	}
	if response.Err == nil || !response.Authoritative() {
		c.deletions.note(object)
	}
	return c.awaitOtherManagers(ctx, c.Check(ctx, response))
}

// contentions limits how often a concurrent delete is sent whose response is lost.
const contentions = 10

// TryDeleteAtOnce sends several concurrent deletes of an object, each until there is a response; a repeated one is another contender. The
// spec ends as errored if the only successful response may be lost.
func TryDeleteAtOnce(ctx context.Context, c *Cluster, object *Object, count int) []Response {
	ginkgo.GinkgoHelper()
	c.deletions.note(object)
	var lost atomic.Pointer[Response]
	request := c.deletionOf(ctx, object, nil)
	responses := InParallel(count, func(int) Response {
		var response Response
		for range contentions {
			if response = c.client.WithoutWriteRetries().Do(ctx, object, Request{Method: http.MethodDelete, Body: request.body()}); response.Authoritative() {
				break
			}
			lost.Store(&response)
		}
		return c.Check(ctx, response)
	})
	succeeded := func(response Response) bool { return response.Err == nil }
	if lost.Load() != nil && !slices.ContainsFunc(responses, succeeded) {
		c.giveUp(ctx, *lost.Load())
	}
	return responses
}

// DeleteCollection deletes this spec's objects of a kind in the object's namespace. Selectors in the options restrict them further.
func (c *Cluster) DeleteCollection(ctx context.Context, like *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	return Require(c.TryDeleteCollection(ctx, like, options...))
}

// TryDeleteCollection is DeleteCollection, but also returns a refusal.
func (c *Cluster) TryDeleteCollection(ctx context.Context, like *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	c.deletions.sweep()
	request := c.deletionOf(ctx, c.session.Harness.StandInFor(like), options)
	request.List.LabelSelector = c.selecting(request.List.LabelSelector)
	collection := c.CollectionOf(ctx, like)
	c.guardCollection(ctx, collection)
	query := request.query()
	if c.dryRun {
		maps.Copy(query, client.DryRun())
	}
	response := c.Check(ctx, c.writing().DeleteCollection(ctx, collection, Request{Query: query, Body: request.body(), ContentType: request.ContentType}))
	if !c.dryRun && !request.isDryRun() {
		c.awaitOtherManagersOfAll(ctx, like)
	}
	return response
}

// TryEvict evicts a pod, with delete options. The Eviction carries the labels of the spec.
func (c *Cluster) TryEvict(ctx context.Context, pod *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	request := deletion(options)
	response := c.Send(ctx, pod, Request{Method: http.MethodPost, Subresource: "eviction", Body: policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.GetName(), Namespace: pod.GetNamespace(), Labels: c.Labels()},
		DeleteOptions: &request.Options,
	}})
	if response.Err == nil && !c.dryRun && !request.isDryRun() {
		c.deletions.note(pod)
	}
	return response
}

// Update reads an object, changes it and writes it back, and retries on conflict.
func (c *Cluster) Update(ctx context.Context, object *Object, changes ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	change := func(object *Object) {
		for _, change := range changes {
			change(object)
		}
	}
	return Require(c.TryUpdate(ctx, object, change)).Object
}

// TryUpdate is Update, but also returns a refusal. It can update a subresource.
func (c *Cluster) TryUpdate(ctx context.Context, object *Object, change ObjectOption, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	var response Response
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := Require(c.TryGet(ctx, object)).Object
		change(live)
		response = c.update(ctx, live, subresource)
		return response.Err
	})
	return c.awaitOtherManagers(ctx, c.Check(ctx, response))
}

// update replaces an object or one of its subresources.
func (c *Cluster) update(ctx context.Context, object *Object, subresource []string) Response {
	return c.do(ctx, object, Request{Method: http.MethodPut, Subresource: strings.Join(subresource, "/"), Body: object.Object})
}

// TryReplace replaces an object once and also returns a refusal. It can replace a subresource. After a conflict with writes of other
// managers only, it is repeated on top of these.
func (c *Cluster) TryReplace(ctx context.Context, object *Object, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	for {
		response := c.Check(ctx, c.update(ctx, object, subresource))
		if !apierrors.IsConflict(response.Err) {
			return c.awaitOtherManagers(ctx, response)
		}
		if object = c.rebased(ctx, object); object == nil {
			return response
		}
	}
}

// Patch patches an object once. The body must encode to the patch as JSON.
func (c *Cluster) Patch(ctx context.Context, object *Object, kind types.PatchType, body any, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	return Require(c.TryPatch(ctx, object, kind, body, subresource...))
}

// TryPatch is Patch, but also returns a refusal.
func (c *Cluster) TryPatch(ctx context.Context, object *Object, kind types.PatchType, body any, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	return c.awaitOtherManagers(ctx, c.Send(ctx, object, Request{
		Method: http.MethodPatch, Subresource: strings.Join(subresource, "/"), Body: body, ContentType: string(kind),
	}))
}

// TryApply applies metadata to an object (server-side apply) as a field manager. It removes fields that the manager applied earlier and no
// longer sets.
func (c *Cluster) TryApply(ctx context.Context, object *Object, manager string, metadata map[string]any) Response {
	ginkgo.GinkgoHelper()
	return c.awaitOtherManagers(ctx, c.Send(ctx, object, Request{
		Method:      http.MethodPatch,
		Query:       url.Values{"fieldManager": {manager}, "force": {"true"}},
		Body:        map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata},
		ContentType: string(types.ApplyYAMLPatchType),
	}))
}

// Release removes the hold from an object that is Held.
func (c *Cluster) Release(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	c.Update(ctx, object, WithoutFinalizers(Hold))
}

// SetStatus patches an object's status, as its controller or its node would.
func (c *Cluster) SetStatus(ctx context.Context, object *Object, fields map[string]any) *Object {
	ginkgo.GinkgoHelper()
	exactly := map[string]any{"uid": object.GetUID()} // whose name may not show that it is the run's
	return c.Patch(ctx, object, types.MergePatchType, map[string]any{"metadata": exactly, "status": fields}, "status").Object
}

// InParallel sends requests in parallel, and returns the responses in the order of the requests.
func InParallel(count int, send func(i int) Response) []Response {
	responses := make([]Response, count)
	var sending sync.WaitGroup
	for i := range count {
		sending.Go(func() {
			defer ginkgo.GinkgoRecover()
			responses[i] = send(i)
		})
	}
	sending.Wait()
	return responses
}
