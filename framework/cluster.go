package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
)

// Object is any object of the API.
type Object = client.Object

// Response is the API server's response to one request.
type Response = client.Response

// Request is a request that no verb of Cluster sends (Send).
type Request = client.Request

// CanaryLabel marks objects of the harness that are not what a spec is about. Timelines show them apart.
const CanaryLabel = client.CanaryLabel

// Collection is all objects of a kind, in one namespace where the kind is namespaced.
type Collection = client.Collection

// Cluster is the cluster as one spec sees it: everything the spec creates gets a name of its own, is watched from
// before it exists, and is gone after the spec.
//
// Verbs such as Delete end the spec when the API server refuses; their Try forms return the refusal to be tested.
// Both end it as an error of the run when the server could not be asked, and as skipped, naming the permission, when
// the credentials do not allow what was asked.
type Cluster struct {
	*spec
	client *client.Client
	// namespace is where namespaced objects are created.
	namespace string
	// impersonates says that the requests are another user's: what that one may not do is the response, not a reason to
	// skip the spec.
	impersonates bool
	// dryRun says that all writes are dry-runs.
	dryRun bool
}

// spec is what all views of the cluster in one spec share.
type spec struct {
	session *session.Session
	// behavior is the id of the spec's behavior, and attempt numbers its attempts in this run, from 1.
	behavior string
	attempt  int
	// id tells this spec's objects from those of others.
	id string
	// created is what the spec has created.
	created creations
	// deletions is what the spec has asked to go.
	deletions deletions
	// used are the collections that the spec's objects are in.
	used []client.Collection
	// namespaces are those that the spec made.
	namespaces []string
	// lostGarbageCollector says which canary the garbage collector left; empty when it left none.
	lostGarbageCollector string
	// watches are what the watches of the spec's own saw.
	watches []*History
	// reviewers review the spec's requests.
	reviewers []Reviewer
	// expectsOtherManagers says that the spec is about the controller of the kind that is tested in the place of ConfigMaps:
	// what that does is not waited for, nor done over.
	expectsOtherManagers bool
	// runsContainers says that containers of the spec's pods run.
	runsContainers bool
	// runError is set when the way to the cluster failed.
	runError string
}

// UseCluster gives the specs of a container their cluster. It skips those whose needs are not met, and clears up
// after each.
func UseCluster() *Cluster {
	cluster := &Cluster{}
	ginkgo.BeforeEach(func(ctx ginkgo.SpecContext) {
		session, err := session.Of(ctx)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		report := ginkgo.CurrentSpecReport()
		behavior, is := specs.BehaviorOf(report)
		if is {
			if reason := session.Lacks(behavior); reason != "" {
				ginkgo.Skip(reason)
			}
			gomega.SetDefaultEventuallyTimeout(session.TimeoutFor(behavior))
		}
		*cluster = *NewCluster(session, rand.String(6))
		cluster.behavior, cluster.attempt = behavior.ID, session.Attempts[behavior.ID]+report.NumAttempts
		cluster.expectsOtherManagers = slices.Contains(behavior.Features, v1alpha1.Controller)
		cluster.runsContainers = slices.Contains(behavior.Features, v1alpha1.Node)
		session.Watches.Journal.Forget()
		session.Recorder.Take()
		ginkgo.DeferCleanup(cluster.cleanUp)
	})
	return cluster
}

// NewCluster is the cluster as a spec of this id sees it. Specs get theirs from UseCluster.
func NewCluster(session *session.Session, id string) *Cluster {
	return &Cluster{spec: &spec{session: session, id: id}, client: session.Client, namespace: session.Namespace}
}

// Session is the worker's connection to the cluster and the settings of the run. Specs need it for settings only; the framework's
// packages use its clients and watches, too.
func (c *Cluster) Session() *session.Session { return c.session }

// Reviewer is a webhook of the spec's own.
type Reviewer interface {
	// Observations are the reviews so far, for the spec's evidence. The client knows the kinds.
	Observations(with *client.Client) []v1alpha1.Review
}

// ReviewedBy adds a webhook's reviews to the evidence of the spec. From now on a write whose response is lost is not repeated: the
// webhook would review it twice.
func (c *Cluster) ReviewedBy(reviewer Reviewer) { c.reviewers = append(c.reviewers, reviewer) }

// AtLeast is how long a spec waits for something that takes up to so long on a fast cluster, and longer than others wait.
func (c *Cluster) AtLeast(duration time.Duration) time.Duration { return c.session.AtLeast(duration) }

// Namespace is where namespaced objects are created.
func (c *Cluster) Namespace() string { return c.namespace }

// In is the same cluster with another namespace to create things in: one that the spec made. It is watched until the
// spec ends.
func (c *Cluster) In(namespace *Object) *Cluster {
	c.namespaces = append(c.namespaces, namespace.GetName())
	inside := *c
	inside.namespace = namespace.GetName()
	return &inside
}

// As is the same cluster as another user sees it, by impersonation. What that user is refused is a response like any
// other. The spec is skipped where the credentials do not allow to impersonate.
func (c *Cluster) As(ctx context.Context, user string, groups ...string) *Cluster {
	ginkgo.GinkgoHelper()
	c.mustImpersonate(ctx, "users", user)
	for _, group := range groups {
		c.mustImpersonate(ctx, "groups", group)
	}
	other := *c
	impersonating, err := c.client.As(rest.ImpersonationConfig{UserName: user, Groups: groups})
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	other.client, other.impersonates = impersonating, true
	return &other
}

// DryRun is the same cluster with all writes as dry-runs: the server answers what they would do, and stores nothing.
func (c *Cluster) DryRun() *Cluster {
	dry := *c
	dry.dryRun = true
	return &dry
}

// mustImpersonate skips the spec where the credentials do not allow to impersonate a user or a group.
func (c *Cluster) mustImpersonate(ctx context.Context, resource, name string) {
	ginkgo.GinkgoHelper()
	impersonate := authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: resource, Name: name}
	switch allowed, err := c.session.Harness.Allowed(ctx, impersonate); {
	case err != nil:
		c.giveUp(ctx, Response{Request: "impersonate " + name, Err: err})
	case !allowed:
		ginkgo.Skip("the credentials do not allow to " + client.Permission(impersonate))
	}
}

// Create creates an object from a manifest and returns it as the server stored it. Its name gets the spec's ending.
func (c *Cluster) Create(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	response := c.TryCreate(ctx, manifest, options...)
	c.skipIfUnacceptable(ctx, response)
	return Require(response).Object
}

// TryCreate is Create, returning the server's response.
func (c *Cluster) TryCreate(ctx context.Context, manifest *Object, options ...ObjectOption) Response {
	ginkgo.GinkgoHelper()
	object := c.Prepare(ctx, manifest, options...)
	if c.dryRun {
		return c.dryRunCreate(ctx, object)
	}
	c.watch(ctx, object)
	response := c.writing().Create(ctx, object, c.created.of(object)...)
	if response.Err == nil && response.Object != nil {
		c.created.note(object, response.Object.GetUID())
	}
	c.Check(ctx, response)
	c.skipIfChanged(ctx, response)
	return response
}

// Get reads an object that must exist.
func (c *Cluster) Get(ctx context.Context, object *Object) *Object {
	ginkgo.GinkgoHelper()
	response := c.TryGet(ctx, object)
	if apierrors.IsNotFound(response.Err) {
		ginkgo.Fail(fmt.Sprintf("%s must exist, but the server returned 404 Not Found.\nIt was last read as:\n  %s\nObserved events:\n%s",
			client.Title(object), describe.Object(object), c.History(object)))
	}
	return Require(response).Object
}

// TryGet reads an object that may be gone.
func (c *Cluster) TryGet(ctx context.Context, object *Object) Response {
	ginkgo.GinkgoHelper()
	return c.Check(ctx, c.client.Get(ctx, object))
}

// dryRunCreate asks what creating an object would make. It skips the spec where a webhook of the cluster has side effects: the
// server refuses all dry-runs then.
func (c *Cluster) dryRunCreate(ctx context.Context, object *Object) Response {
	ginkgo.GinkgoHelper()
	response := c.Check(ctx, c.client.DryRunCreate(ctx, object))
	if apierrors.IsBadRequest(response.Err) && strings.Contains(response.Message(), "does not support dry run") {
		ginkgo.Skip(response.Message())
	}
	return response
}

// List reads the objects of a kind and namespace that this spec made, or that carry its labels.
func (c *Cluster) List(ctx context.Context, like *Object) []*Object {
	ginkgo.GinkgoHelper()
	objects, response := c.client.List(ctx, c.CollectionOf(ctx, like), c.selector())
	Require(c.Check(ctx, response))
	return objects
}

// CollectionOf is the collection that an object is in, or would be.
func (c *Cluster) CollectionOf(ctx context.Context, object *Object) Collection {
	ginkgo.GinkgoHelper()
	collection, err := c.session.Harness.CollectionOf(c.session.Harness.StandInFor(object))
	c.mustServe(ctx, object, err)
	return collection
}

// mustServe skips the spec when the server does not serve an object's kind, and ends it when that could not be found out.
func (c *Cluster) mustServe(ctx context.Context, object *Object, err error) {
	ginkgo.GinkgoHelper()
	switch {
	case meta.IsNoMatchError(err):
		kind := object.GroupVersionKind()
		ginkgo.Skip(fmt.Sprintf("the server does not serve %s (%s)", kind.Kind, kind.GroupVersion()))
	case err != nil:
		c.giveUp(ctx, Response{Request: "use " + object.GetKind(), Err: err})
	}
}

// Watch begins to watch a kind of which the spec itself creates nothing: what controllers create of it with the run's
// labels.
func (c *Cluster) Watch(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	c.watch(ctx, c.Prepare(ctx, like))
}

// Unwatch ends the watch of a kind that the spec is about to break: what happens to its objects from now on is no part of
// their history.
func (c *Cluster) Unwatch(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	ended := c.CollectionOf(ctx, like)
	c.session.Watches.Leave(func(collection client.Collection) bool { return collection == ended })
}

func (c *Cluster) watch(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	collection := c.CollectionOf(ctx, object)
	c.used = client.Distinct(append(c.used, collection))
	if response := c.session.Watches.Cover(ctx, collection); response.Err != nil {
		c.giveUp(ctx, response)
	}
}

// AwaitDependents waits until this many objects were seen to be created with a reference to an owner, and returns them.
// Only those of kinds count that the spec watches or creates.
func (c *Cluster) AwaitDependents(ctx context.Context, owner *Object, count int) []*Object {
	ginkgo.GinkgoHelper()
	var dependents []*Object
	gomega.Eventually(ctx, func() ([]*Object, error) {
		var err error
		dependents, err = c.dependentsOf(owner)
		return dependents, err
	}).Should(HaveCount(count, "dependents of "+client.Title(owner)))
	return dependents
}

// dependentsOf are the objects that were seen to be created with a reference to an owner.
func (c *Cluster) dependentsOf(owner *Object) ([]*Object, error) {
	events, err := c.session.Watches.Journal.Read(func(event journal.Event) bool {
		references := event.Object.GetOwnerReferences()
		return event.Type == watch.Added && c.uses(event.Object) && slices.ContainsFunc(references, func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID()
		})
	})
	var dependents []*Object
	for _, event := range events {
		dependents = append(dependents, event.Object)
	}
	return dependents, err
}

// uses says that the spec itself watches an object's kind: the watches of a worker outlast the specs that began them.
func (c *Cluster) uses(object *Object) bool {
	kind := object.GroupVersionKind()
	return slices.ContainsFunc(c.used, func(collection client.Collection) bool {
		return collection.Kind == kind.Kind && collection.Resource.Group == kind.Group && collection.Namespace == object.GetNamespace()
	})
}

// History is what happened to these objects since the spec began.
func (c *Cluster) History(subjects ...*Object) *History {
	return &History{journal: c.session.Watches.Journal, subjects: subjects}
}

// Require ends the spec unless the response is a success, and returns it.
func Require(response Response) Response {
	ginkgo.GinkgoHelper()
	if response.Err != nil {
		ginkgo.Fail(fmt.Sprintf("%s must succeed, but the server returned %d: %s", response.Request, response.StatusCode, response.Message()))
	}
	return response
}

// Check returns the response if the server decided on the request. Otherwise it ends the spec: as skipped, naming the cause, where
// the cluster's own admission or the credentials did not allow the request, and as an error of the run where the server could not
// be asked. Err may be any error of something that the spec needs.
func (c *Cluster) Check(ctx context.Context, response Response) Response {
	ginkgo.GinkgoHelper()
	c.skipIfRefused(response)
	if !response.Authoritative() || response.Refused() && !c.impersonates {
		c.giveUp(ctx, response)
	}
	return response
}

// WarningsOf are the texts of a response's Warning headers. Where the response was lost it ends the spec as an error of the run.
func WarningsOf(c *Cluster, response Response) []string {
	ginkgo.GinkgoHelper()
	texts, known := response.Warnings()
	if !known {
		c.runError = fmt.Sprintf("%s could not be tested: its response was lost, and the warnings with it", response.Request)
		ginkgo.Fail(c.runError)
	}
	return texts
}

// giveUp ends the spec where its failure would say nothing about the behavior: the credentials do not allow the
// request (skipped, naming the permission), or the server could not be asked (an error of the run). It returns when
// neither is so.
func (c *Cluster) giveUp(ctx context.Context, response Response) {
	ginkgo.GinkgoHelper()
	if response.Refused() {
		if permission := c.session.Harness.MissingPermission(ctx, response); permission != "" {
			ginkgo.Skip("the credentials do not allow to " + permission)
		}
		if response.Authoritative() {
			return
		}
	}
	c.runError = fmt.Sprintf("%s could not be tested: %v", response.Request, response.Err)
	if cause := context.Cause(ctx); cause != nil && (errors.Is(response.Err, ctx.Err()) || errors.Is(response.Err, cause)) {
		c.runError = ""
		ginkgo.Fail(fmt.Sprintf("%s did not end in time: %v", response.Request, cause))
	}
	ginkgo.Fail(c.runError)
}
