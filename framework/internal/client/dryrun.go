package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// DryRun is the query that asks what would happen, and that nothing does.
func DryRun() url.Values { return url.Values{"dryRun": {metav1.DryRunAll}} }

// errChanges says that a request was not sent.
var errChanges = errors.New("it is no dry-run, and nothing may be changed")

// OnlyDryRun is a configuration with which nothing can be changed: what is neither a read, nor a review, nor in its
// query a dry-run is not sent.
func OnlyDryRun(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if changes(request) {
				return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errChanges)
			}
			return next.RoundTrip(request)
		})
	})
	return config
}

// changes says that a request would change something.
func changes(request *http.Request) bool {
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead || request.Method == http.MethodOptions
	return !reads && request.URL.Query().Get("dryRun") != metav1.DryRunAll && !strings.HasSuffix(request.URL.Path, "reviews")
}

// Strict is the query that rejects objects with fields that the server does not know.
var Strict = url.Values{"fieldValidation": {metav1.FieldValidationStrict}}

// DryRunCreate sends a create as a dry-run.
func (c *Client) DryRunCreate(ctx context.Context, object *Object, queries ...url.Values) Response {
	query := DryRun()
	for _, more := range queries {
		maps.Copy(query, more)
	}
	return c.create(ctx, object, Request{Query: query})
}
