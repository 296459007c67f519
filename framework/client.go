package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Object is any object of the API.
type Object = unstructured.Unstructured

// Answer is what the API server said to one request.
type Answer struct {
	// Status is the HTTP status; 0 where no answer came.
	Status int
	// Object is what the answer carried: the object, or a Status.
	Object *Object
	// Warnings are the texts of the answer's Warning headers.
	Warnings []string
	// Err is the refusal, nil when the request succeeded.
	Err error
	// asked is the request in words, for messages.
	asked string
	// body is what was answered, as it came.
	body []byte
}

// Message is what the server said with a refusal; empty without one.
func (a Answer) Message() string {
	if a.Err == nil {
		return ""
	}
	return a.Err.Error()
}

// judged says that the server itself decided: the answer is its word about the request, not trouble on the way to it
// (no connection, throttled, overloaded, failing). A disruption budget that refuses an eviction uses the status of
// throttling, and is a decision.
func (a Answer) judged() bool {
	return a.Err == nil || apierrors.HasStatusCause(a.Err, policyv1.DisruptionBudgetCause) ||
		a.Status >= 400 && a.Status < 500 && a.Status != http.StatusTooManyRequests
}

// client asks an API server for things and keeps the whole answer: status, warnings and body.
type client struct {
	rest      rest.Interface
	dynamic   dynamic.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
}

// Requests a second, and how many at once, that a client may make. The server protects itself (priority and fairness);
// this keeps a worker from being a bad guest when it is not protected.
const (
	requestsPerSecond = 200
	requestsAtOnce    = 400
)

func newClient(config *rest.Config) (*client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	config.WarningHandler = rest.NoWarnings{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's credentials: %w", err)
	}
	asking, err := rest.UnversionedRESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	watching, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	discovering, err := discovery.NewDiscoveryClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(discovering)
	return &client{
		rest:      asking,
		dynamic:   watching,
		discovery: cached,
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(cached),
	}, nil
}

// mapping finds the resource that serves an object's kind. What is not known is asked for anew: the kind may have been
// defined since.
func (c *client) mapping(object *Object) (*meta.RESTMapping, error) {
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

// collectionPath is the path under which objects of a resource are created and listed.
func collectionPath(resource schema.GroupVersionResource, namespace string) string {
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return strings.Join(append(path, resource.Resource), "/")
}

// path is the path of an object, or of one of its subresources.
func (c *client) path(object *Object, subresources ...string) (string, error) {
	mapping, err := c.mapping(object)
	if err != nil {
		return "", err
	}
	path := append([]string{collectionPath(mapping.Resource, object.GetNamespace()), object.GetName()}, subresources...)
	return strings.Join(path, "/"), nil
}

// request is one request, before it is sent.
type request struct {
	verb  string
	path  string
	query url.Values
	body  any
	// contentType is the body's media type; JSON when empty.
	contentType string
	// once takes the first answer, also one that asks to come again later.
	once bool
}

// ask sends one request. Trouble on the way is retried for reads only: a write may have been done before its answer
// was lost, and a spec must know what was done.
func (c *client) ask(ctx context.Context, request request) Answer {
	if request.verb != http.MethodGet {
		return c.askOnce(ctx, request)
	}
	var answer Answer
	retry := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 7, Jitter: 0.1}
	_ = wait.ExponentialBackoffWithContext(ctx, retry, func(ctx context.Context) (bool, error) {
		answer = c.askOnce(ctx, request)
		return answer.judged(), nil
	})
	return answer
}

func (c *client) askOnce(ctx context.Context, request request) Answer {
	answer := Answer{asked: request.verb + " " + request.path}
	sending := c.rest.Verb(request.verb).AbsPath(request.path)
	if request.once {
		sending = sending.MaxRetries(0)
	}
	for name, values := range request.query {
		for _, value := range values {
			sending = sending.Param(name, value)
		}
	}
	if request.body != nil {
		body, err := json.Marshal(request.body)
		if err != nil {
			answer.Err = fmt.Errorf("encode the body of %s: %w", answer.asked, err)
			return answer
		}
		sending = sending.Body(body)
	}
	if request.contentType != "" {
		sending = sending.SetHeader("Content-Type", request.contentType)
	}
	result := sending.Do(ctx).StatusCode(&answer.Status)
	for _, warning := range result.Warnings() {
		answer.Warnings = append(answer.Warnings, warning.Text)
	}
	body, err := result.Raw()
	answer.body = body
	answer.Err = refusal(err, body)
	if status := apierrors.APIStatus(nil); errors.As(answer.Err, &status) {
		answer.Status = int(status.Status().Code)
	}
	if object := (&Object{}); len(body) > 0 && object.UnmarshalJSON(body) == nil {
		answer.Object = object
	}
	return answer
}

// refusal prefers the Status that the server sent over the one that client-go makes up from the HTTP status.
func refusal(err error, body []byte) error {
	if err == nil {
		return nil
	}
	sent := metav1.Status{}
	if json.Unmarshal(body, &sent) == nil && sent.Kind == "Status" && sent.Code != 0 {
		return &apierrors.StatusError{ErrStatus: sent}
	}
	return err
}

// create posts an object, to where its kind and namespace say.
func (c *client) create(ctx context.Context, object *Object) Answer {
	mapping, err := c.mapping(object)
	if err != nil {
		return Answer{asked: "create " + title(object), Err: err}
	}
	return c.ask(ctx, request{
		verb: http.MethodPost,
		path: collectionPath(mapping.Resource, object.GetNamespace()),
		body: object.Object,
	})
}

// onObject asks for something of an object that exists, or of one of its subresources.
func (c *client) onObject(ctx context.Context, object *Object, request request, subresources ...string) Answer {
	path, err := c.path(object, subresources...)
	if err != nil {
		return Answer{asked: request.verb + " " + title(object), Err: err}
	}
	request.path = path
	return c.ask(ctx, request)
}

func (c *client) get(ctx context.Context, object *Object) Answer {
	return c.onObject(ctx, object, request{verb: http.MethodGet})
}

// list reads the objects of a collection that a label selector names.
func (c *client) list(ctx context.Context, collection, selector string) ([]*Object, error) {
	objects, _, err := c.page(ctx, collection, url.Values{"labelSelector": {selector}})
	return objects, err
}

// page reads objects of a collection and gives each its kind, which the server says only once for all. Where the query
// limits their number, next is what the query for the page after it continues with; it is empty on the last one.
func (c *client) page(ctx context.Context, collection string, query url.Values) (objects []*Object, next string, err error) {
	answer := c.ask(ctx, request{verb: http.MethodGet, path: collection, query: query})
	if answer.Err != nil {
		return nil, "", answer.Err
	}
	list, err := answer.Object.ToList()
	if err != nil {
		return nil, "", fmt.Errorf("%s: the answer is no list: %w", answer.asked, err)
	}
	objects = make([]*Object, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
		objects[i].SetAPIVersion(list.GetAPIVersion())
		objects[i].SetKind(strings.TrimSuffix(list.GetKind(), "List"))
	}
	return objects, list.GetContinue(), nil
}

// version is the resourceVersion of a collection now: what happens from now on has later ones.
func (c *client) version(ctx context.Context, collection, selector string) (string, error) {
	answer := c.ask(ctx, request{
		verb: http.MethodGet, path: collection, query: url.Values{"labelSelector": {selector}, "limit": {"1"}},
	})
	if answer.Err != nil {
		return "", answer.Err
	}
	if answer.Object == nil {
		return "", fmt.Errorf("%s: the answer is no list", answer.asked)
	}
	return answer.Object.GetResourceVersion(), nil
}

func (c *client) delete(ctx context.Context, object *Object, options metav1.DeleteOptions) Answer {
	return c.onObject(ctx, object, request{verb: http.MethodDelete, body: withKind(options)})
}

func (c *client) patch(ctx context.Context, object *Object, kind types.PatchType, body any, subresources ...string) Answer {
	return c.onObject(ctx, object, request{verb: http.MethodPatch, body: body, contentType: string(kind)}, subresources...)
}

// withKind says of delete options what they are, as the API server wants it in a body.
func withKind(options metav1.DeleteOptions) metav1.DeleteOptions {
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	return options
}

// title names an object in messages: ConfigMap "owner-x7k2p".
func title(object *Object) string { return fmt.Sprintf("%s %q", object.GetKind(), object.GetName()) }
