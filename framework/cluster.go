package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// Object is any object of the API.
type Object = client.Object

// Response is the API server's response to one request.
type Response = client.Response

// Request is a request that no other method of Cluster sends (Send).
type Request = client.Request

// CanaryLabel marks objects of the harness that are not part of the test. Timelines show them separately.
const CanaryLabel = client.CanaryLabel

// Collection is all objects of a kind, in one namespace where the kind is namespaced.
type Collection = client.Collection

// Cluster is the cluster as one spec sees it. Every object that the spec creates gets a unique name, is watched before it exists, and is
// removed after the spec.
//
// Methods such as Delete fail the spec when the API server refuses; their Try forms return the refusal. Both end the spec as errored when
// the server did not decide on the request, and as skipped when a permission is missing.
type Cluster struct {
	*spec
	client *client.Client
	// namespace is the namespace of created objects.
	namespace string
	// impersonates is set for requests of another user. A refusal is then a result, not a reason to skip the spec.
	impersonates bool
	// dryRun sends all writes as dry-runs.
	dryRun bool
}

// spec is the state that all views of the cluster share within a spec.
type spec struct {
	session *session.Session
	// behavior is the id of the spec's behavior, and attempt the number of its attempt in this run, from 1.
	behavior string
	attempt  int
	// id distinguishes this spec's objects from those of other specs.
	id string
	// created are the objects that the spec has created.
	created creations
	// deletions are the objects that the spec has deleted.
	deletions deletions
	// used are the collections of the spec's objects.
	used []client.Collection
	// namespaces are those that the spec created.
	namespaces []string
	// lostGarbageCollector describes the canary that the garbage collector did not delete; empty when there is none.
	lostGarbageCollector string
	// watches are the histories of watches that the spec started.
	watches []*History
	// reviewers review the spec's requests.
	reviewers []Reviewer
	// expectsOtherManagers is set when the spec tests the controller of the resource under test. The framework then does not wait for the
	// controller or retry after its writes.
	expectsOtherManagers bool
	// runsContainers is set when containers of the spec's pods run, and disruptive when the spec stops components.
	runsContainers, disruptive bool
	// features are those that the spec's behavior requires.
	features []v1alpha1.Feature
	// overdue is the last wait that has failed; nil when none has.
	overdue atomic.Pointer[overdue]
	// runError is set when requests did not reach the cluster.
	runError string
}

// UseCluster gives the specs of a container their cluster. It skips specs that require a missing feature, and cleans up after each.
func UseCluster() *Cluster {
	cluster := &Cluster{}
	ginkgo.BeforeEach(func(ctx ginkgo.SpecContext) {
		session, err := session.Of(ctx)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		report := ginkgo.CurrentSpecReport()
		behavior, ok := specs.BehaviorOf(report)
		if ok {
			if reason := session.SkipReason(behavior); reason != "" {
				ginkgo.Skip(reason)
			}
			gomega.SetDefaultEventuallyTimeout(session.TimeoutFor(behavior))
		}
		*cluster = *NewCluster(session, rand.String(6))
		cluster.behavior, cluster.attempt = behavior.ID, session.Attempts[behavior.ID]+report.NumAttempts
		cluster.features, session.Recovers = behavior.Features, cluster.recovers
		cluster.expectsOtherManagers = slices.Contains(behavior.Features, v1alpha1.Controller)
		cluster.runsContainers, cluster.disruptive = slices.Contains(behavior.Features, v1alpha1.Node), behavior.Disruptive
		session.Watches.Journal.Forget()
		session.Recorder.Take()
		session.Recorder.TakeEvents()
		ginkgo.DeferCleanup(cluster.cleanUp)
	})
	return cluster
}

// NewCluster returns the cluster for a spec with this id. Specs use UseCluster.
func NewCluster(session *session.Session, id string) *Cluster {
	return &Cluster{spec: &spec{session: session, id: id}, client: session.Client, namespace: session.Namespace}
}

// Session is the worker's connection to the cluster and the settings of the run. Specs use only the settings; packages of the framework
// also use the clients and watches.
func (c *Cluster) Session() *session.Session { return c.session }

// Reviewer is a webhook of the spec.
type Reviewer interface {
	// Observations returns the reviews so far, for the spec's evidence. The client maps their kinds.
	Observations(with *client.Client) []v1alpha1.Review
}

// ReviewedBy adds a webhook's reviews to the evidence of the spec. From then on a write whose response is lost is not retried, because the
// webhook would review it twice.
func (c *Cluster) ReviewedBy(reviewer Reviewer) { c.reviewers = append(c.reviewers, reviewer) }

// NamespaceDeletion is how long the namespace controller may take on a fast cluster that deletes many namespaces. It waits for 5 s, and sends
// requests for each resource, by default at most 20 a second for all namespaces (--kube-api-qps of kube-controller-manager).
const NamespaceDeletion = 3 * time.Minute

// Namespace is the namespace of created objects.
func (c *Cluster) Namespace() string { return c.namespace }

// In returns the same cluster with another namespace for new objects, which the spec created. The namespace is watched until the spec ends.
func (c *Cluster) In(namespace *Object) *Cluster {
	c.namespaces = append(c.namespaces, namespace.GetName())
	inside := *c
	inside.namespace = namespace.GetName()
	return &inside
}

// As returns the cluster as another user sees it, by impersonation. Refusals are returned as responses. The spec is skipped when the
// credentials may not impersonate.
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

// DryRun returns the same cluster with all writes as dry-runs: the server stores nothing.
func (c *Cluster) DryRun() *Cluster {
	dry := *c
	dry.dryRun = true
	return &dry
}

// WithToken is the same cluster as seen by whom a bearer token authenticates, on behalf of another user. What is refused is a response
// like any other.
func (c *Cluster) WithToken(token, onBehalfOf string) *Cluster {
	ginkgo.GinkgoHelper()
	authenticated, err := c.Through(func(connection *client.Client) (*client.Client, error) {
		return connection.WithToken(token, rest.ImpersonationConfig{UserName: onBehalfOf})
	})
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	authenticated.impersonates = true
	return authenticated
}

// Through returns the same cluster through another connection. Packages of the framework derive it from that of the spec.
func (c *Cluster) Through(connect func(*client.Client) (*client.Client, error)) (*Cluster, error) {
	connection, err := connect(c.client)
	if err != nil {
		return nil, err
	}
	other := *c
	other.client = connection
	return &other, nil
}

// mustImpersonate skips the spec when the credentials may not impersonate a user or a group.
func (c *Cluster) mustImpersonate(ctx context.Context, resource, name string) {
	ginkgo.GinkgoHelper()
	impersonate := authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: resource, Name: name}
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok { // for which the API server checks another resource
		impersonate.Resource = "serviceaccounts"
		impersonate.Namespace, impersonate.Name, _ = strings.Cut(account, ":")
	}
	c.mustBeAllowed(ctx, impersonate)
}

// mustBeAllowed skips the spec when the credentials of the run lack a permission.
func (c *Cluster) mustBeAllowed(ctx context.Context, permission authorizationv1.ResourceAttributes) {
	ginkgo.GinkgoHelper()
	switch allowed, err := c.session.Harness.Allowed(ctx, permission); {
	case err != nil:
		c.giveUp(ctx, Response{Request: client.Permission(permission), Err: err})
	case !allowed:
		ginkgo.Skip("missing permission: " + client.Permission(permission))
	}
}

// mustRelease skips the spec when the credentials may not remove the finalizers of a new cluster-scoped object, which would stay. Setup
// checks the permissions in namespaces.
func (c *Cluster) mustRelease(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	specFinalizers, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "finalizers")
	for subresource, finalizers := range map[string][]string{"": object.GetFinalizers(), "finalize": specFinalizers} {
		isOwn := func(finalizer string) bool { return strings.HasPrefix(finalizer, Domain) }
		if !slices.ContainsFunc(finalizers, isOwn) {
			continue
		}
		if collection := c.CollectionOf(ctx, object); collection.Namespace == "" {
			c.mustBeAllowed(ctx, authorizationv1.ResourceAttributes{
				Verb: "update", Group: collection.Resource.Group, Resource: collection.Resource.Resource, Subresource: subresource,
			})
		}
	}
}

// Create creates an object from a manifest and returns it as the server stored it. The name gets the spec's suffix.
func (c *Cluster) Create(ctx context.Context, manifest *Object, options ...ObjectOption) *Object {
	ginkgo.GinkgoHelper()
	response := c.TryCreate(ctx, manifest, options...)
	c.skipIfUnacceptable(ctx, response)
	return Require(response).Object
}

// TryCreate is Create, but returns the server's response.
func (c *Cluster) TryCreate(ctx context.Context, manifest *Object, options ...ObjectOption) Response {
	ginkgo.GinkgoHelper()
	object := c.Prepare(ctx, manifest, options...)
	if c.dryRun {
		return c.dryRunCreate(ctx, object)
	}
	c.mustRelease(ctx, object)
	c.watch(ctx, object)
	create := c.writing().Create
	if object.GetKind() == "VolumeAttachment" { // whose name the attach/detach controller prescribes
		create = c.writing().CreateNamed
	}
	response := create(ctx, object, c.created.of(object)...)
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

// TryGet reads an object that may not exist.
func (c *Cluster) TryGet(ctx context.Context, object *Object) Response {
	ginkgo.GinkgoHelper()
	return c.Check(ctx, c.client.Get(ctx, object))
}

// dryRunCreate creates an object as a dry-run. It skips the spec when a webhook of the cluster has side effects, because the server then
// refuses dry-runs.
func (c *Cluster) dryRunCreate(ctx context.Context, object *Object) Response {
	ginkgo.GinkgoHelper()
	response := c.Check(ctx, c.client.DryRunCreate(ctx, object))
	if apierrors.IsBadRequest(response.Err) && strings.Contains(response.Message(), "does not support dry run") {
		ginkgo.Skip(response.Message())
	}
	return response
}

// List reads the objects of a kind and namespace that carry this spec's labels.
func (c *Cluster) List(ctx context.Context, like *Object) []*Object {
	ginkgo.GinkgoHelper()
	objects, response := c.client.List(ctx, c.CollectionOf(ctx, like), c.selector())
	Require(c.Check(ctx, response))
	return objects
}

// CollectionOf returns the collection of an object, which need not exist.
func (c *Cluster) CollectionOf(ctx context.Context, object *Object) Collection {
	ginkgo.GinkgoHelper()
	collection, err := c.session.Harness.CollectionOf(c.session.Harness.StandInFor(object))
	c.mustServe(ctx, object, err)
	return collection
}

// mustServe skips the spec when the server does not serve an object's kind, and ends it as errored when discovery failed.
func (c *Cluster) mustServe(ctx context.Context, object *Object, err error) {
	ginkgo.GinkgoHelper()
	switch {
	case meta.IsNoMatchError(err):
		ginkgo.Skip(client.NotServed(object.GroupVersionKind()))
	case err != nil:
		c.giveUp(ctx, Response{Request: "use " + object.GetKind(), Err: err})
	}
}

// Watch starts to watch a kind of which only controllers create objects, with the run's labels.
func (c *Cluster) Watch(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	c.watch(ctx, c.Prepare(ctx, like))
}

// Unwatch stops the watch of a kind that the spec is about to break. Later events are not part of the history.
func (c *Cluster) Unwatch(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	ended := c.CollectionOf(ctx, like)
	c.session.Watches.Drop(func(collection client.Collection) bool { return collection == ended })
}

func (c *Cluster) watch(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	collection := c.CollectionOf(ctx, object)
	c.used = client.Distinct(append(c.used, collection))
	if response := c.session.Watches.Cover(ctx, collection); response.Err != nil {
		c.giveUp(ctx, response)
	}
}

// AwaitDependents waits until this many objects with a reference to an owner were created, and returns them. Only kinds that the spec
// watches or creates count.
func (c *Cluster) AwaitDependents(ctx context.Context, owner *Object, count int) []*Object {
	ginkgo.GinkgoHelper()
	var dependents []*Object
	poll := func() ([]*Object, error) {
		var err error
		dependents, err = c.dependentsOf(owner)
		return dependents, err
	}
	gomega.Eventually(ctx, poll).Should(Awaited(c, poll, HaveCount(count, "dependents of "+client.Title(owner))))
	return dependents
}

// dependentsOf returns the created objects with a reference to an owner.
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

// uses reports whether this spec watches an object's kind: a worker's watches outlive the specs that started them.
func (c *Cluster) uses(object *Object) bool {
	kind := object.GroupVersionKind()
	return slices.ContainsFunc(c.used, func(collection client.Collection) bool {
		return collection.Kind == kind.Kind && collection.Resource.Group == kind.Group && collection.Namespace == object.GetNamespace()
	})
}

// History returns the events of these objects since the spec began.
func (c *Cluster) History(subjects ...*Object) *History {
	return &History{journal: c.session.Watches.Journal, subjects: subjects, spec: c.spec}
}

// Require fails the spec unless the response is a success, and returns it.
func Require(response Response) Response {
	ginkgo.GinkgoHelper()
	if response.Err != nil {
		ginkgo.Fail(fmt.Sprintf("%s must succeed, but the server returned %d: %s", response.Request, response.StatusCode, response.Message()))
	}
	return response
}

// Check returns the response if the server decided on the request. Otherwise it ends the spec: as skipped, with the cause, when admission
// or the credentials did not permit the request, as failed when the server answers this request with an error each time and serves others, and
// as errored when the server did not decide. Err may be any error.
func (c *Cluster) Check(ctx context.Context, response Response) Response {
	ginkgo.GinkgoHelper()
	c.skipIfRefused(response)
	if c.client.FailsPersistently(ctx, response, c.serves) {
		ginkgo.Fail(fmt.Sprintf("%s must be decided, but the server returned %d each time, and served other requests meanwhile: %s",
			response.Request, response.StatusCode, response.Message()))
	}
	if !response.Authoritative() || response.Forbidden() && !c.impersonates {
		c.giveUp(ctx, response)
	}
	return response
}

// serves reports whether the server creates an object: with a dry-run where the run creates nothing. It is removed with the namespace, or with
// the labels of the run.
func (c *Cluster) serves(ctx context.Context) bool {
	create := c.session.Harness.Create
	if c.session.NoCreate {
		create = func(ctx context.Context, object *Object, _ ...types.UID) Response {
			return c.session.Harness.DryRunCreate(ctx, object)
		}
	}
	own, served := NewCluster(c.session, c.id), Canary(fixtures.ConfigMap(""))
	served.SetName("served-" + rand.String(6))
	return create(ctx, own.Prepare(ctx, served)).Err == nil
}

// WarningsOf returns the texts of a response's Warning headers. If the response was lost it ends the spec as errored.
func WarningsOf(c *Cluster, response Response) []string {
	ginkgo.GinkgoHelper()
	texts, known := response.Warnings()
	if !known {
		c.Errored(fmt.Sprintf("%s: the response and its warnings were lost", response.Request))
	}
	return texts
}

// Errored ends the spec as errored: it could not observe enough to test the behavior.
func (c *Cluster) Errored(reason string) {
	ginkgo.GinkgoHelper()
	c.runError = reason
	ginkgo.Fail(reason)
}

// giveUp ends the spec when a failure would not concern the behavior: as skipped when a permission is missing, and as errored when the
// server did not decide. Otherwise it returns.
func (c *Cluster) giveUp(ctx context.Context, response Response) {
	ginkgo.GinkgoHelper()
	if response.Forbidden() {
		if permission := c.session.Harness.MissingPermission(ctx, response); permission != "" {
			ginkgo.Skip("missing permission: " + permission)
		}
		if response.Authoritative() {
			return
		}
	}
	if cause := context.Cause(ctx); cause != nil && (errors.Is(response.Err, ctx.Err()) || errors.Is(response.Err, cause)) {
		ginkgo.Fail(fmt.Sprintf("%s did not end in time: %v", response.Request, cause))
	}
	c.Errored(fmt.Sprintf("%s could not be tested: %v", response.Request, response.Err))
}
