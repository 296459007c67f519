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

// DryRun is the query of a dry-run.
func DryRun() url.Values { return url.Values{"dryRun": {metav1.DryRunAll}} }

// errChanges is the error for a request that was not sent.
var errChanges = errors.New("not a dry-run, and this run changes nothing")

// OnlyDryRun returns a configuration whose client cannot change anything: it sends only reads, reviews and dry-runs.
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

// changes reports whether a request would change an object.
func changes(request *http.Request) bool {
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead || request.Method == http.MethodOptions
	return !reads && request.URL.Query().Get("dryRun") != metav1.DryRunAll && !strings.HasSuffix(request.URL.Path, "reviews")
}

// Strict is the query that rejects objects with unknown fields.
var Strict = url.Values{"fieldValidation": {metav1.FieldValidationStrict}}

// DryRunCreate sends a create as a dry-run.
func (c *Client) DryRunCreate(ctx context.Context, object *Object, queries ...url.Values) Response {
	query := DryRun()
	for _, more := range queries {
		maps.Copy(query, more)
	}
	return c.create(ctx, object, Request{Query: query})
}
