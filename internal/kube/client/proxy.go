package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// A proxy, such as kubectl's, forwards requests over the client's transport and records their objects.

// Transport returns the transport of the client's requests, with its credentials, and their base URL. It retries reads, and writes that the
// server rejected because of load.
func (c *Client) Transport() (http.RoundTripper, *url.URL, error) {
	transport, err := limitedTransport(c.config, c.guard, proxyLimit)
	if err != nil {
		return nil, nil, fmt.Errorf("read the cluster's credentials: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", c.config.Host, err)
	}
	return persistent{transport}, base, nil
}

// RequestFor parses a path as the API server does. The object is nil for discovery and other paths without one.
func (c *Client) RequestFor(method, path string) Request {
	request := parsePath(method, path)
	if about := request.Object; about != nil {
		about.Kind = c.KindOf(schema.GroupVersionResource{Group: about.Group, Version: about.Version, Resource: about.Resource}).Kind
	}
	return request
}

// parsePath is RequestFor without the kind, which paths do not contain.
func parsePath(method, path string) Request {
	request := Request{Method: method, Path: path}
	elements := strings.Split(strings.Trim(path, "/"), "/")
	about := &v1alpha1.ObjectReference{}
	switch {
	case elements[0] == "api" && len(elements) > 2:
		about.Version, elements = elements[1], elements[2:]
	case elements[0] == "apis" && len(elements) > 3:
		about.Group, about.Version, elements = elements[1], elements[2], elements[3:]
	default:
		return request
	}
	if elements[0] == "namespaces" && len(elements) > 2 && elements[2] != "status" && elements[2] != "finalize" {
		about.Namespace, elements = elements[1], elements[2:]
	}
	about.Resource, elements = elements[0], elements[1:]
	if len(elements) > 0 {
		about.Name = elements[0]
		request.Subresource = strings.Join(elements[1:], "/")
	}
	request.Object = about
	return request
}

// Proxied returns a context with the object of a forwarded request, for the recorder.
func Proxied(ctx context.Context, request Request) context.Context { return withSubject(ctx, request) }

// ErrorResponse returns the response to a forwarded request that was rejected, with the server's message if it is known.
func (r Request) ErrorResponse(statusCode int, message string) Response {
	resource := schema.GroupResource{}
	if r.Object != nil {
		resource = schema.GroupResource{Group: r.Object.Group, Resource: r.Object.Resource}
	}
	refusal := apierrors.NewGenericServerResponse(statusCode, strings.ToLower(r.Method), resource, "", "returned to kubectl", 0, true)
	if message != "" {
		refusal.ErrStatus.Message = message
	}
	return Response{Request: r.String(), StatusCode: statusCode, sent: r, Err: refusal}
}
