package framework

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
)

// Cluster is the cluster as one spec sees it: everything the spec creates gets a name of its own, is watched from
// before it exists, and is gone after the spec.
//
// Verbs such as Delete end the spec when the API server refuses; their Try forms return the refusal to be judged.
// Both end it as an error of the run when the server could not be asked, and as skipped, naming the permission, when
// the credentials do not allow what was asked.
type Cluster struct {
	session *Session
	// spec tells this spec's objects from those of others.
	spec string
	// created holds what the spec made, oldest first.
	created []*Object
	// runError is set when the way to the cluster failed.
	runError string
}

// UseCluster gives the specs of a container their cluster. It skips those whose needs are not met, and clears up
// after each.
func UseCluster() *Cluster {
	cluster := &Cluster{}
	ginkgo.BeforeEach(func(ctx ginkgo.SpecContext) {
		session, err := sessionOf(ctx)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		if contract, is := BehaviorOf(ginkgo.CurrentSpecReport()); is {
			if reason := session.lacks(contract); reason != "" {
				ginkgo.Skip(reason)
			}
		}
		*cluster = Cluster{session: session, spec: rand.String(6)}
		session.watches.journal.forget()
		session.recorder.take()
		ginkgo.DeferCleanup(cluster.leave)
	})
	return cluster
}

// Namespace is where the spec's namespaced objects are.
func (c *Cluster) Namespace() string { return c.session.Namespace }

// Group is an API group of this spec's own.
func (c *Cluster) Group() string { return c.session.Run + "-" + c.spec + "." + Domain }

// Create creates an object from a manifest and returns it as the server stored it. Its name gets the spec's ending.
func (c *Cluster) Create(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	return c.must(c.TryCreate(ctx, manifest, options...)).Object
}

// TryCreate is Create, returning the server's answer.
func (c *Cluster) TryCreate(ctx context.Context, manifest *Object, options ...ObjectOption) Answer {
	ginkgo.GinkgoHelper()
	object := c.prepare(ctx, manifest, options)
	c.watch(ctx, object)
	answer := c.asked(ctx, c.session.client.create(ctx, object))
	if answer.Err == nil {
		c.created = append(c.created, answer.Object)
	}
	return answer
}

// prepare completes a manifest: a free name, the worker's namespace, the run's labels, and the spec's options.
func (c *Cluster) prepare(ctx context.Context, manifest *Object, options []ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	object := manifest.DeepCopy()
	mapping := c.mapping(ctx, object)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(c.session.Namespace)
	}
	if object.GetKind() != "CustomResourceDefinition" { // whose name is given by what it defines
		object.SetName(object.GetName() + "-" + c.spec)
	}
	object.SetLabels(c.labelled(object.GetLabels()))
	template, has, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	if has {
		// The path was just read, so it can be written.
		_ = unstructured.SetNestedStringMap(object.Object, c.labelled(template), "spec", "template", "metadata", "labels")
	}
	fromMirror(object, c.session.ImageRegistry)
	for _, option := range options {
		option(object)
	}
	return object
}

// mapping finds the resource that serves an object's kind.
func (c *Cluster) mapping(ctx context.Context, object *Object) *meta.RESTMapping {
	ginkgo.GinkgoHelper()
	mapping, err := c.session.client.mapping(object)
	if err != nil {
		c.giveUp(ctx, Answer{asked: "use " + object.GetKind(), Err: err})
	}
	return mapping
}

func (c *Cluster) labelled(labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[RunLabel] = c.session.Run
	labels[WorkerLabel] = strconv.Itoa(c.session.Worker)
	labels[SpecLabel] = c.spec
	return labels
}

// Get reads an object that must exist.
func (c *Cluster) Get(ctx context.Context, object *Object) *Object {
	ginkgo.GinkgoHelper()
	answer := c.Find(ctx, object)
	if apierrors.IsNotFound(answer.Err) {
		ginkgo.Fail(fmt.Sprintf("Expected to be there:\n  %s\nIt is gone (404). Happened:\n%s", describe(object), c.History(object)))
	}
	return c.must(answer).Object
}

// Find reads an object that may be gone.
func (c *Cluster) Find(ctx context.Context, object *Object) Answer {
	ginkgo.GinkgoHelper()
	return c.asked(ctx, c.session.client.get(ctx, object))
}

// List reads the objects of a kind and namespace that this spec made, or that carry its labels.
func (c *Cluster) List(ctx context.Context, like *Object) []*Object {
	ginkgo.GinkgoHelper()
	mapping := c.mapping(ctx, like)
	objects, err := c.session.client.list(ctx, collectionPath(mapping.Resource, like.GetNamespace()), c.selector())
	if err != nil {
		c.giveUp(ctx, Answer{asked: "list " + mapping.Resource.Resource, Err: err})
	}
	return objects
}

// Delete asks for an object's deletion.
func (c *Cluster) Delete(ctx context.Context, object *Object, options ...DeleteOption) Answer {
	ginkgo.GinkgoHelper()
	return c.must(c.TryDelete(ctx, object, options...))
}

// TryDelete is Delete, also returning a refusal.
func (c *Cluster) TryDelete(ctx context.Context, object *Object, options ...DeleteOption) Answer {
	ginkgo.GinkgoHelper()
	asked := metav1.DeleteOptions{}
	for _, option := range options {
		option(&asked)
	}
	return c.asked(ctx, c.session.client.delete(ctx, object, asked))
}

// TryEvict asks for a pod's eviction, with delete options.
func (c *Cluster) TryEvict(ctx context.Context, pod *Object, options ...DeleteOption) Answer {
	ginkgo.GinkgoHelper()
	asked := metav1.DeleteOptions{}
	for _, option := range options {
		option(&asked)
	}
	eviction := policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.GetName(), Namespace: pod.GetNamespace()},
		DeleteOptions: &asked,
	}
	return c.asked(ctx, c.session.client.onObject(ctx, pod, request{verb: http.MethodPost, body: eviction, once: true}, "eviction"))
}

// Edit reads an object, changes it and writes it back, again when somebody else wrote in between.
func (c *Cluster) Edit(ctx context.Context, object *Object, changes ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	change := func(object *Object) {
		for _, change := range changes {
			change(object)
		}
	}
	return c.must(c.TryEdit(ctx, object, change)).Object
}

// TryEdit is Edit, also returning a refusal.
func (c *Cluster) TryEdit(ctx context.Context, object *Object, change ObjectOption, subresources ...string) Answer {
	ginkgo.GinkgoHelper()
	var answer Answer
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := c.must(c.Find(ctx, object)).Object
		change(live)
		answer = c.session.client.onObject(ctx, live, request{verb: http.MethodPut, body: live.Object}, subresources...)
		return answer.Err
	})
	return c.asked(ctx, answer)
}

// Patch changes an object with one patch. The body is whatever encodes to the patch's JSON.
func (c *Cluster) Patch(ctx context.Context, object *Object, kind types.PatchType, body any, subresources ...string) Answer {
	ginkgo.GinkgoHelper()
	return c.must(c.TryPatch(ctx, object, kind, body, subresources...))
}

// TryPatch is Patch, also returning a refusal.
func (c *Cluster) TryPatch(ctx context.Context, object *Object, kind types.PatchType, body any, subresources ...string) Answer {
	ginkgo.GinkgoHelper()
	return c.asked(ctx, c.session.client.patch(ctx, object, kind, body, subresources...))
}

// DryRunPatch asks what a patch would do, and that nothing does.
func (c *Cluster) DryRunPatch(ctx context.Context, object *Object, kind types.PatchType, body any) Answer {
	ginkgo.GinkgoHelper()
	return c.must(c.asked(ctx, c.session.client.onObject(ctx, object, request{
		verb: http.MethodPatch, query: url.Values{"dryRun": {metav1.DryRunAll}}, body: body, contentType: string(kind),
	})))
}

// Apply applies metadata to an object (server-side apply) on behalf of the spec: what it applied before and leaves out
// now is removed.
func (c *Cluster) Apply(ctx context.Context, object *Object, metadata map[string]any) Answer {
	ginkgo.GinkgoHelper()
	body := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata}
	return c.must(c.asked(ctx, c.session.client.onObject(ctx, object, request{
		verb:        http.MethodPatch,
		query:       url.Values{"fieldManager": {Domain}, "force": {"true"}},
		body:        body,
		contentType: string(types.ApplyYAMLPatchType),
	})))
}

// CreateDefinition defines a custom kind and waits until the server serves it.
func (c *Cluster) CreateDefinition(ctx context.Context, manifest *Object) *Object {
	ginkgo.GinkgoHelper()
	definition := c.Create(ctx, manifest)
	gomega.Eventually(ctx, c.History(definition)).Should(Show(Seen(definition, haveCondition("Established"))))
	gomega.Eventually(ctx, func() error {
		_, err := c.session.client.mapping(definedBy(definition))
		return err
	}).WithPolling(discoveryPolling).Should(gomega.Succeed(), "discovery shows an established kind")
	return definition
}

// discoveryPolling is how often discovery is asked for a new kind; it cannot be watched.
const discoveryPolling = 50 * time.Millisecond

// definedBy is an empty object of the kind that a definition defines.
func definedBy(definition *Object) *Object {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	object := &Object{}
	for _, version := range versions {
		name, _, _ := unstructured.NestedString(version.(map[string]any), "name")
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
	}
	return object
}

// Release lets go of an object that is Held.
func (c *Cluster) Release(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	c.Edit(ctx, object, WithoutFinalizers(Hold))
}

// SetPhase writes a pod's status.phase, as its node would.
func (c *Cluster) SetPhase(ctx context.Context, pod *Object, phase string) *Object {
	ginkgo.GinkgoHelper()
	status := map[string]any{"status": map[string]any{"phase": phase}}
	return c.Patch(ctx, pod, types.MergePatchType, status, "status").Object
}

// Watch begins to watch a kind of which the spec itself creates nothing: what controllers create of it with the run's
// labels.
func (c *Cluster) Watch(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	c.watch(ctx, c.prepare(ctx, like, nil))
}

func (c *Cluster) watch(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	if err := c.session.watches.cover(ctx, object); err != nil {
		c.giveUp(ctx, Answer{asked: "watch " + object.GetKind(), Err: err})
	}
}

// DependentsOf finds the objects that were seen to be created with a reference to an owner, for Eventually.
func (c *Cluster) DependentsOf(owner *Object) func() ([]*Object, error) {
	return func() ([]*Object, error) {
		events, err := c.session.watches.journal.read(func(event Event) bool {
			references := event.Object.GetOwnerReferences()
			return event.Type == watch.Added && slices.ContainsFunc(references, func(reference metav1.OwnerReference) bool {
				return reference.UID == owner.GetUID()
			})
		})
		var dependents []*Object
		for _, event := range events {
			dependents = append(dependents, event.Object)
		}
		return dependents, err
	}
}

// History is what happened to these objects since the spec began.
func (c *Cluster) History(subjects ...*Object) *History {
	return &History{journal: c.session.watches.journal, subjects: subjects}
}

// must ends the spec unless the answer is a success.
func (c *Cluster) must(answer Answer) Answer {
	ginkgo.GinkgoHelper()
	if answer.Err != nil {
		ginkgo.Fail(fmt.Sprintf("expected %s to succeed; the server answered %d: %s", answer.asked, answer.Status, answer.Message()))
	}
	return answer
}

// asked passes on what the server decided, and ends the spec when it did not get to decide.
func (c *Cluster) asked(ctx context.Context, answer Answer) Answer {
	ginkgo.GinkgoHelper()
	if !answer.judged() || apierrors.IsForbidden(answer.Err) {
		c.giveUp(ctx, answer)
	}
	return answer
}

// giveUp ends the spec where its failure would say nothing about the behaviour: the credentials do not allow the
// request (skipped, naming the permission), or the server could not be asked (an error of the run). It returns when
// neither is so.
func (c *Cluster) giveUp(ctx context.Context, answer Answer) {
	ginkgo.GinkgoHelper()
	if apierrors.IsForbidden(answer.Err) {
		if permission := c.session.client.missingPermission(ctx, answer.Err); permission != "" {
			ginkgo.Skip("the credentials do not allow to " + permission)
		}
		if answer.judged() {
			return
		}
	}
	c.runError = fmt.Sprintf("%s could not be judged: %v", answer.asked, answer.Err)
	if cause := context.Cause(ctx); cause != nil && errors.Is(answer.Err, ctx.Err()) {
		c.runError = ""
		ginkgo.Fail(fmt.Sprintf("%s did not end in time: %v", answer.asked, cause))
	}
	ginkgo.Fail(c.runError)
}
