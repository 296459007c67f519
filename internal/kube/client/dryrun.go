package client

import (
	"context"
	"maps"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DryRun is the query of a dry-run.
func DryRun() url.Values { return url.Values{"dryRun": {metav1.DryRunAll}} }

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
