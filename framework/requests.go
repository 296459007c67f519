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

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// writing is the client that writes are sent with. Where the spec has requests reviewed, it counts how often: none is sent again
// whose response was lost.
func (c *Cluster) writing() *client.Client {
	if len(c.reviewers) > 0 {
		return c.client.Once()
	}
	return c.client
}

// Send sends a request about an object, or about one of its subresources.
func (c *Cluster) Send(ctx context.Context, object *Object, request Request) Response {
	ginkgo.GinkgoHelper()
	return c.Check(ctx, c.do(ctx, object, request))
}

// do sends a request about an object, as a dry-run where all are.
func (c *Cluster) do(ctx context.Context, object *Object, request Request) Response {
	if c.dryRun && request.Method != http.MethodGet {
		dry := client.DryRun()
		maps.Copy(dry, request.Query)
		request.Query = dry
	}
	return c.writing().Do(ctx, object, request)
}

// ExpectDeletions notes that something else than the spec's own requests may delete its objects from now on, such as kubectl.
func (c *Cluster) ExpectDeletions() { c.deletions.sweep() }

// Delete asks for an object's deletion. If the response is lost, the object shows whether it was done. A delete that is conditional
// on the object's resourceVersion is sent again for the next one if only other managers have written to the object since.
func (c *Cluster) Delete(ctx context.Context, object *Object, options ...DeleteOption) {
	ginkgo.GinkgoHelper()
	response := c.delete(ctx, object, options, true)
	for apierrors.IsConflict(response.Err) && deletion(options).isOnlyOf(object) {
		if object = c.rebased(ctx, object); object == nil {
			break
		}
		options = append(slices.Clone(options), IfVersion(object.GetResourceVersion()))
		response = c.delete(ctx, object, options, true)
	}
	Require(response)
}

// TryDelete is Delete, returning the response, which may be a refusal. It ends the spec as an error of the run where the response is lost.
func (c *Cluster) TryDelete(ctx context.Context, object *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	return c.delete(ctx, object, options, false)
}

// delete deletes an object. Where the spec does not look at the response and it is lost, the object shows whether it was carried out.
func (c *Cluster) delete(ctx context.Context, object *Object, options []DeleteOption, unseen bool) Response {
	ginkgo.GinkgoHelper()
	asked := c.deletionOf(ctx, object, options)
	response := c.do(ctx, object, Request{
		Method: http.MethodDelete, Query: asked.query(), Body: asked.body(), Begins: unseen && c.deletions.begins(object), Repeats: c.deletions.repeats(object),
	})
	if c.dryRun || asked.isDryRun() {
		return c.Check(ctx, response)
	}
	if response.Err == nil || !response.Authoritative() {
		c.deletions.note(object)
	}
	return c.awaitOthers(ctx, c.Check(ctx, response))
}

// contentions is how often a contested delete is sent whose response is lost.
const contentions = 10

// TryDeleteAtOnce asks for an object's deletion several times side by side, each time until there is a response: a
// repeated one is one more that contends. Where a response was lost that may have been the only success, the spec
// cannot be tested.
func TryDeleteAtOnce(ctx context.Context, c *Cluster, object *Object, count int) []Response {
	ginkgo.GinkgoHelper()
	c.deletions.note(object)
	var lost atomic.Pointer[Response]
	asked := c.deletionOf(ctx, object, nil)
	responses := AtOnce(count, func(int) Response {
		var response Response
		for range contentions {
			if response = c.client.Once().Do(ctx, object, Request{Method: http.MethodDelete, Body: asked.body()}); response.Authoritative() {
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

// DeleteCollection asks for the deletion of all that this spec made of an object's kind, in the object's namespace.
// Selectors in the options narrow that down.
func (c *Cluster) DeleteCollection(ctx context.Context, like *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	return Require(c.TryDeleteCollection(ctx, like, options...))
}

// TryDeleteCollection is DeleteCollection, also returning a refusal.
func (c *Cluster) TryDeleteCollection(ctx context.Context, like *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	c.deletions.sweep()
	asked := c.deletionOf(ctx, c.session.Harness.StandInFor(like), options)
	asked.List.LabelSelector = c.selecting(asked.List.LabelSelector)
	collection := c.CollectionOf(ctx, like)
	c.guardCollection(ctx, collection)
	query := asked.query()
	if c.dryRun {
		maps.Copy(query, client.DryRun())
	}
	response := c.Check(ctx, c.writing().DeleteCollection(ctx, collection, query, asked.body()))
	if !c.dryRun && !asked.isDryRun() {
		c.awaitOthersOfAll(ctx, like)
	}
	return response
}

// TryEvict asks for a pod's eviction, with delete options. The eviction is labelled as all that the spec makes.
func (c *Cluster) TryEvict(ctx context.Context, pod *Object, options ...DeleteOption) Response {
	ginkgo.GinkgoHelper()
	asked := deletion(options)
	response := c.Send(ctx, pod, Request{Method: http.MethodPost, Subresource: "eviction", Body: policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.GetName(), Namespace: pod.GetNamespace(), Labels: c.Labels()},
		DeleteOptions: &asked.Options,
	}})
	if response.Err == nil && !c.dryRun && !asked.isDryRun() {
		c.deletions.note(pod)
	}
	return response
}

// Update reads an object, changes it and writes it back, again when somebody else wrote in between.
func (c *Cluster) Update(ctx context.Context, object *Object, changes ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	change := func(object *Object) {
		for _, change := range changes {
			change(object)
		}
	}
	return Require(c.TryUpdate(ctx, object, change)).Object
}

// TryUpdate is Update, also returning a refusal. A subresource may be named.
func (c *Cluster) TryUpdate(ctx context.Context, object *Object, change ObjectOption, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	var response Response
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := Require(c.TryGet(ctx, object)).Object
		change(live)
		response = c.update(ctx, live, subresource)
		return response.Err
	})
	return c.awaitOthers(ctx, c.Check(ctx, response))
}

// update writes an object, or one of its subresources, as it is.
func (c *Cluster) update(ctx context.Context, object *Object, subresource []string) Response {
	return c.do(ctx, object, Request{Method: http.MethodPut, Subresource: strings.Join(subresource, "/"), Body: object.Object})
}

// TryReplace writes an object as it is, once, also returning a refusal. A subresource may be named. Where it is refused
// because others have written meanwhile, and only they, it is written again as if they had written before.
func (c *Cluster) TryReplace(ctx context.Context, object *Object, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	for {
		response := c.Check(ctx, c.update(ctx, object, subresource))
		if !apierrors.IsConflict(response.Err) {
			return c.awaitOthers(ctx, response)
		}
		if object = c.rebased(ctx, object); object == nil {
			return response
		}
	}
}

// Patch changes an object with one patch. The body is whatever encodes to the patch's JSON.
func (c *Cluster) Patch(ctx context.Context, object *Object, kind types.PatchType, body any, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	return Require(c.TryPatch(ctx, object, kind, body, subresource...))
}

// TryPatch is Patch, also returning a refusal.
func (c *Cluster) TryPatch(ctx context.Context, object *Object, kind types.PatchType, body any, subresource ...string) Response {
	ginkgo.GinkgoHelper()
	return c.awaitOthers(ctx, c.Send(ctx, object, Request{
		Method: http.MethodPatch, Subresource: strings.Join(subresource, "/"), Body: body, ContentType: string(kind),
	}))
}

// TryApply applies metadata to an object (server-side apply) on behalf of a field manager: what it applied before and leaves out
// now is removed.
func (c *Cluster) TryApply(ctx context.Context, object *Object, manager string, metadata map[string]any) Response {
	ginkgo.GinkgoHelper()
	return c.awaitOthers(ctx, c.Send(ctx, object, Request{
		Method:      http.MethodPatch,
		Query:       url.Values{"fieldManager": {manager}, "force": {"true"}},
		Body:        map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata},
		ContentType: string(types.ApplyYAMLPatchType),
	}))
}

// Release lets go of an object that is Held.
func (c *Cluster) Release(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	c.Update(ctx, object, WithoutFinalizers(Hold))
}

// SetStatus writes fields of an object's status, as its controller or its node would.
func (c *Cluster) SetStatus(ctx context.Context, object *Object, fields map[string]any) *Object {
	ginkgo.GinkgoHelper()
	return c.Patch(ctx, object, types.MergePatchType, map[string]any{"status": fields}, "status").Object
}

// AtOnce sends requests side by side, and returns the responses in the order of the requests.
func AtOnce(count int, send func(i int) Response) []Response {
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
