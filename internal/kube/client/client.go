// Package client is the API client of a run: for setup, discovery, specs and cleanup. It limits, retries, guards and records requests, and
// returns the whole response: status, warnings and body. It knows the object of each request, for records and messages.
package client

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
)

// Object is any object of the API.
type Object = unstructured.Unstructured

// Client is a connection to an API server.
type Client struct {
	config    *rest.Config
	rest      rest.Interface
	dynamic   dynamic.Interface
	discovery discovery.CachedDiscoveryInterface
	schemas   openapi.Client
	mapper    meta.ResettableRESTMapper
	// standInKind is the kind that replaces ConfigMaps on this server.
	standInKind func() schema.GroupVersionKind
	// standIn replaces all ConfigMaps; nil for none.
	standIn *Object
	// recorded is set for the client of specs, which check requests and responses.
	recorded bool
	// patience limits the retries of a request that failed because of the connection.
	patience time.Duration
	// noWriteRetries is set where writes are not retried after a lost response.
	noWriteRetries bool
	// absent are the objects that are known not to exist.
	absent *absences
	// failedWebhooks are the webhooks for which requests are no longer retried.
	failedWebhooks *failedWebhooks
	// overlay is added to every object that the client creates.
	overlay overlay.Overlay
	// guard rejects writes to objects that the run did not create.
	guard *Guard
	// accepts is the media type of the responses that are accepted; JSON objects where it is empty.
	accepts string
}

// Rate limits of a client. They protect servers without priority and fairness.
const (
	requestsPerSecond = 200
	requestsAtOnce    = 400
)

// New returns the client of a run. The guard decides which objects it may change. New sends no request. It fails when the credentials
// cannot be read.
func New(config *rest.Config, guard *Guard) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	config.UserAgent = Domain // which the server uses as the field manager
	config.WarningHandler = rest.NoWarnings{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	transport, err := httpClient(config, guard)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's credentials: %w", err)
	}
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	persistent := withRetries(transport)
	watches, err := dynamic.NewForConfigAndClient(config, persistent)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	discoveries, err := discovery.NewDiscoveryClientForConfigAndClient(config, persistent)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(discoveries)
	made := &Client{
		config:    config,
		rest:      requests,
		dynamic:   watches,
		discovery: cached,
		schemas:   discoveries.OpenAPIV3(),
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(cached),
		patience:  patience,
		absent:    &absences{paths: map[string]bool{}},
		guard:     guard,

		failedWebhooks: &failedWebhooks{names: map[string]bool{}},
	}
	if guard.read == nil { // set once: derived clients impersonate users or are recorded
		guard.read = made.Send
	}
	made.standInKind = sync.OnceValue(made.findStandInKind)
	return made, nil
}

// As returns a client of the same server that impersonates a user. It shares discovery.
func (c *Client) As(user rest.ImpersonationConfig) (*Client, error) {
	return c.with(func(config *rest.Config) { config.Impersonate = user })
}

// WithToken returns a client of the same server that authenticates by a bearer token and impersonates a user. It shares discovery.
func (c *Client) WithToken(token string, user rest.ImpersonationConfig) (*Client, error) {
	return c.with(func(config *rest.Config) {
		wrapped := config.WrapTransport
		*config = *rest.AnonymousClientConfig(config)
		config.WrapTransport, config.BearerToken, config.Impersonate = wrapped, token, user
	})
}

// Recorded returns a client of the same server that records its requests, for specs. It shares discovery.
func (c *Client) Recorded(recorder *Recorder) (*Client, error) {
	changed, err := c.with(func(config *rest.Config) { config.Wrap(recorder.Wrap) })
	if err != nil {
		return nil, err
	}
	changed.recorded = true
	return changed, nil
}

// Accepting returns a client of the same server that accepts responses of a media type, such as that of tables. It shares discovery.
func (c *Client) Accepting(mediaType string) (*Client, error) {
	changed, err := c.with(func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				request = request.Clone(request.Context())
				request.Header.Set("Accept", mediaType)
				return next.RoundTrip(request)
			})
		})
	})
	if err == nil {
		changed.accepts = mediaType
	}
	return changed, err
}

// Over returns a client of the same server that speaks one version of HTTP, by its name in TLS: "http/1.1" or "h2". It fails with
// an OtherProtocol where the server speaks another one. It shares discovery.
func (c *Client) Over(ctx context.Context, protocol string) (*Client, error) {
	var spoken atomic.Pointer[string]
	changed, err := c.with(func(config *rest.Config) {
		config.NextProtos = []string{protocol}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				if err == nil {
					spoken.Store(&response.Proto)
				}
				return response, err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	asked := changed.Send(ctx, Request{Method: http.MethodGet, Path: "/version"})
	switch {
	case spoken.Load() == nil:
		return nil, asked.Err
	case (*spoken.Load() == "HTTP/2.0") != (protocol == "h2"):
		return nil, OtherProtocol(*spoken.Load())
	}
	return changed, nil
}

// OtherProtocol is the version of HTTP that a server speaks instead of the requested one.
type OtherProtocol string

func (o OtherProtocol) Error() string { return "the server speaks " + string(o) }

// WithoutWriteRetries returns the same client without retries of writes whose response was lost, for specs that count requests.
func (c *Client) WithoutWriteRetries() *Client {
	changed := *c
	changed.noWriteRetries = true
	return &changed
}

// Adding returns the same client with an overlay that it applies to every object that it creates.
func (c *Client) Adding(added overlay.Overlay) *Client {
	adding := *c
	adding.overlay = added
	return &adding
}

func (c *Client) with(change func(*rest.Config)) (*Client, error) {
	config := rest.CopyConfig(c.config)
	change(config)
	changed, err := New(config, c.guard)
	if err != nil {
		return nil, err
	}
	changed.discovery, changed.schemas, changed.mapper, changed.standInKind = c.discovery, c.schemas, c.mapper, c.standInKind
	changed.recorded, changed.noWriteRetries, changed.standIn, changed.absent = c.recorded, c.noWriteRetries, c.standIn, c.absent
	changed.failedWebhooks = c.failedWebhooks
	changed.overlay, changed.accepts = c.overlay, c.accepts
	return changed, nil
}

// Except allows the run to change one object that it did not create, because the user requested it.
func (c *Client) Except(object *Object) error {
	collection, err := c.CollectionOf(object)
	if err == nil {
		c.guard.Except(collection, object.GetName())
	}
	return err
}

// Authenticate runs the exec plugin of the credentials, if there is one and it has not run. It has no time limit, because a user may log in.
func (c *Client) Authenticate() error { return credentials.Ensure(c.config) }

// Rediscover invalidates the discovery cache.
func (c *Client) Rediscover() { c.mapper.Reset() }

// Discovery returns the cached discovery of the server.
func (c *Client) Discovery() discovery.CachedDiscoveryInterface { return c.discovery }

// Schemas returns the server's OpenAPI v3 schemas. They are not cached.
func (c *Client) Schemas() openapi.Client { return c.schemas }

// ShortNames returns a mapper that accepts every name that kubectl accepts for a resource.
func (c *Client) ShortNames() meta.RESTMapper {
	return restmapper.NewShortcutExpander(c.mapper, c.discovery, func(string) {})
}

// Mapping returns the resource that serves an object's kind. It repeats discovery once for an unknown kind, which may be new.
func (c *Client) Mapping(object *Object) (*meta.RESTMapping, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource that serves %s: %w", kind, err)
	}
	return mapping, nil
}

// Serves fails with a NoMatch error when the server serves neither a kind nor one that replaces it. It does not repeat discovery.
func (c *Client) Serves(kind schema.GroupVersionKind) error {
	object := &Object{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	kind = c.StandInFor(object).GroupVersionKind()
	_, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err
}

// NotServed is why nothing can be tested that uses a kind.
func NotServed(kind schema.GroupVersionKind) string {
	return fmt.Sprintf("%s%s (%s)", NotServedPrefix, kind.Kind, kind.GroupVersion())
}

// NotServedPrefix is the beginning of NotServed.
const NotServedPrefix = "the server does not serve "

// KindOf returns the kind of a resource; empty when the server does not serve it.
func (c *Client) KindOf(resource schema.GroupVersionResource) schema.GroupVersionKind {
	kind, _ := c.mapper.KindFor(resource)
	return kind
}

// Do sends a request for an object or one of its subresources.
func (c *Client) Do(ctx context.Context, object *Object, request Request) Response {
	request, err := c.about(object, request)
	if err != nil {
		return Response{Request: request.Method + " " + Title(object), Err: err}
	}
	return c.Send(ctx, request)
}

// DoOnce sends a request about an object, or about its collection if it has no name, and never retries it.
func (c *Client) DoOnce(ctx context.Context, object *Object, request Request) Response {
	request, err := c.about(object, request)
	if err != nil {
		return Response{Request: request.Method + " " + Title(object), Err: err}
	}
	return c.SendOnce(ctx, request)
}

// about completes a request with the path of an object.
func (c *Client) about(object *Object, request Request) (Request, error) {
	collection, err := c.CollectionOf(object)
	if err != nil {
		return request, err
	}
	request.Path, request.Object = collection.path(), collection.referenceTo(object)
	if object.GetName() == "" || request.Method == http.MethodPost && request.Subresource == "" {
		return request, nil
	}
	request.Path += "/" + object.GetName()
	if request.Subresource != "" {
		request.Path += "/" + request.Subresource
	}
	return request, nil
}

// Create creates an object. The uids are those of earlier objects with the same name.
func (c *Client) Create(ctx context.Context, object *Object, before ...types.UID) Response {
	return c.create(ctx, object, Request{Before: before})
}

// CreateNamed creates an object whose name the user or a controller prescribes, so that it need not contain the run's id. If that succeeds, the run may change and
// delete exactly this object.
func (c *Client) CreateNamed(ctx context.Context, object *Object, before ...types.UID) Response {
	collection, err := c.CollectionOf(object)
	if err != nil {
		return Response{Request: "create " + Title(object), Err: err}
	}
	at := collection.path() + "/" + object.GetName()
	c.guard.noteCreated(at, "")
	response := c.Create(ctx, object, before...)
	if response.Err == nil && response.Object != nil && !response.inferred {
		c.guard.noteCreated(at, response.Object.GetUID())
	}
	return response
}

// create posts an object with the client's overlay.
func (c *Client) create(ctx context.Context, object *Object, request Request) Response {
	title := Title(object)
	collection, err := c.CollectionOf(object)
	if err == nil {
		object, err = c.Completed(object)
	}
	if err != nil {
		return Response{Request: "create " + title, Err: err}
	}
	request.Method, request.Path, request.Object = http.MethodPost, collection.path(), collection.referenceTo(object)
	request.Body = object.Object
	return c.Send(ctx, request)
}

// Completed returns an object with the client's overlay, as Create sends it.
func (c *Client) Completed(object *Object) (*Object, error) { return c.overlay.Complete(object) }

// Get reads an object.
func (c *Client) Get(ctx context.Context, object *Object) Response {
	return c.Do(ctx, object, Request{Method: http.MethodGet})
}

// Update replaces an object or one of its subresources.
func (c *Client) Update(ctx context.Context, object *Object, subresource string) Response {
	return c.Do(ctx, object, Request{Method: http.MethodPut, Body: object.Object, Subresource: subresource})
}

// Patch patches an object or one of its subresources. The body must encode to the patch as JSON.
func (c *Client) Patch(ctx context.Context, object *Object, kind types.PatchType, body any, subresource string) Response {
	return c.Do(ctx, object, Request{
		Method: http.MethodPatch, Body: body, ContentType: string(kind), Subresource: subresource,
	})
}

// Delete deletes an object, with the options in the body.
func (c *Client) Delete(ctx context.Context, object *Object, options metav1.DeleteOptions) Response {
	return c.Do(ctx, object, Request{Method: http.MethodDelete, Body: WithKind(options)})
}

// WithKind adds the apiVersion and kind that the API server requires in a body.
func WithKind(options metav1.DeleteOptions) metav1.DeleteOptions {
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	return options
}

// Title names an object in messages: ConfigMap "owner-x7k2p".
func Title(object *Object) string { return fmt.Sprintf("%s %q", object.GetKind(), object.GetName()) }
