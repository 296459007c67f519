package framework

import (
	"fmt"
	"maps"
	"net/url"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// DeleteOption changes a DeleteRequest.
type DeleteOption func(*DeleteRequest)

// DeleteRequest is the content of a delete.
type DeleteRequest struct {
	// Options are the delete options. Their kind defaults to DeleteOptions of v1.
	Options metav1.DeleteOptions
	// List selects the objects of a collection.
	List metav1.ListOptions
	// InQuery sends the options as query parameters, and no body.
	InQuery bool
	// Query are further query parameters.
	Query url.Values
	// Body replaces the options if it is not nil.
	Body []byte
	// ContentType is the media type of the options; JSON where it is empty.
	ContentType string
}

func deletion(options []DeleteOption) *DeleteRequest {
	request := &DeleteRequest{}
	for _, option := range options {
		option(request)
	}
	return request
}

// body returns the request's body; nil for none.
func (d *DeleteRequest) body() any {
	switch {
	case d.Body != nil:
		return d.Body
	case d.InQuery:
		return nil
	case d.ContentType != "":
		return encoded(d.Options, d.ContentType)
	case d.Options.Kind != "":
		return d.Options
	}
	return client.WithKind(d.Options)
}

// query returns the request's query parameters.
func (d *DeleteRequest) query() url.Values {
	ginkgo.GinkgoHelper()
	query := parameters(&d.List)
	maps.Copy(query, d.Query)
	if d.InQuery {
		for name, values := range parameters(&d.Options) {
			query[name] = values
		}
	}
	return query
}

// isSilent reports whether the request leaves the propagation policy to the server, and may name one. One that ignores read errors may not.
func (d *DeleteRequest) isSilent() bool {
	return d.Body == nil && d.Options.PropagationPolicy == nil && d.Options.OrphanDependents == nil && //nolint:staticcheck // deprecated, and tested
		d.Options.IgnoreStoreReadErrorWithClusterBreakingPotential == nil &&
		!d.Query.Has("propagationPolicy") && !d.Query.Has("orphanDependents")
}

// requiresVersionOf reports whether the request requires the resourceVersion of an object.
func (d *DeleteRequest) requiresVersionOf(object *Object) bool {
	only := d.Options.Preconditions
	return only != nil && only.ResourceVersion != nil && *only.ResourceVersion == object.GetResourceVersion()
}

// isDryRun reports whether the request is a dry-run.
func (d *DeleteRequest) isDryRun() bool { return len(d.Options.DryRun) > 0 || d.Query.Has("dryRun") }

// parameters encodes options as query parameters.
func parameters(options runtime.Object) url.Values {
	ginkgo.GinkgoHelper()
	query, err := scheme.ParameterCodec.EncodeParameters(options, schema.GroupVersion{Version: "v1"})
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode %T as query parameters: %v", options, err))
	}
	return query
}

// Orphan keeps the dependents and removes their references to the owner (propagationPolicy Orphan).
func Orphan(request *DeleteRequest) {
	request.Options.PropagationPolicy = new(metav1.DeletePropagationOrphan)
}

// Background deletes the owner at once and its dependents afterwards.
func Background(request *DeleteRequest) {
	request.Options.PropagationPolicy = new(metav1.DeletePropagationBackground)
}

// Foreground keeps the owner, terminating, until its blocking dependents are gone.
func Foreground(request *DeleteRequest) {
	request.Options.PropagationPolicy = new(metav1.DeletePropagationForeground)
}

// Policy sets a propagation policy by name, which may be invalid.
func Policy(name string) DeleteOption {
	return func(request *DeleteRequest) {
		request.Options.PropagationPolicy = new(metav1.DeletionPropagation(name))
	}
}

// OrphanDependents sets the deprecated orphanDependents.
func OrphanDependents(orphan bool) DeleteOption {
	return func(request *DeleteRequest) {
		request.Options.OrphanDependents = &orphan //nolint:staticcheck // deprecated, and tested
	}
}

// Grace sets the grace period, in seconds.
func Grace(seconds int64) DeleteOption {
	return func(request *DeleteRequest) { request.Options.GracePeriodSeconds = &seconds }
}

// IfUID makes the delete conditional on the object's uid.
func IfUID(uid types.UID) DeleteOption {
	return func(request *DeleteRequest) { request.preconditions().UID = &uid }
}

// IfVersion makes the delete conditional on the object's resourceVersion.
func IfVersion(version string) DeleteOption {
	return func(request *DeleteRequest) { request.preconditions().ResourceVersion = &version }
}

// IgnoringReadErrors asks for an object to be removed from the storage although it cannot be read
// (ignoreStoreReadErrorWithClusterBreakingPotential).
func IgnoringReadErrors(request *DeleteRequest) {
	request.Options.IgnoreStoreReadErrorWithClusterBreakingPotential = new(true)
}

// DryRun makes the delete a dry-run.
func DryRun(request *DeleteRequest) { request.Options.DryRun = []string{metav1.DryRunAll} }

// DryRunTwice is DryRun in the body, which takes effect, and in the query, which audit logs show. It is for objects that the spec did not
// create, which a faulty server must not delete.
func DryRunTwice(request *DeleteRequest) {
	DryRun(request)
	request.Query = client.DryRun()
}

// InQuery sends the options as query parameters, and no body.
func InQuery(request *DeleteRequest) { request.InQuery = true }

// RawBody replaces the delete options.
func RawBody(body string) DeleteOption {
	return func(request *DeleteRequest) { request.Body = []byte(body) }
}

// OptionsOf sends delete options as the kind DeleteOptions of another API version: "meta.k8s.io/v1".
func OptionsOf(apiVersion string) DeleteOption {
	return func(request *DeleteRequest) {
		request.Options.TypeMeta = metav1.TypeMeta{APIVersion: apiVersion, Kind: "DeleteOptions"}
	}
}

// WithLabelSelector restricts a collection by a label selector.
func WithLabelSelector(selector string) DeleteOption {
	return func(request *DeleteRequest) { request.List.LabelSelector = selector }
}

// WithFieldSelector restricts a collection by a field selector.
func WithFieldSelector(selector string) DeleteOption {
	return func(request *DeleteRequest) { request.List.FieldSelector = selector }
}

// Limit deletes at most this many objects of a collection.
func Limit(count int64) DeleteOption {
	return func(request *DeleteRequest) { request.List.Limit = count }
}

func (d *DeleteRequest) preconditions() *metav1.Preconditions {
	if d.Options.Preconditions == nil {
		d.Options.Preconditions = &metav1.Preconditions{}
	}
	return d.Options.Preconditions
}
