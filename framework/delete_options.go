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

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// DeleteOption changes what a delete asks for.
type DeleteOption func(*DeleteRequest)

// DeleteRequest is what a delete asks for, and how.
type DeleteRequest struct {
	// Options are the delete options. Their kind and version are v1's DeleteOptions unless said otherwise.
	Options metav1.DeleteOptions
	// List selects the objects of a collection.
	List metav1.ListOptions
	// InQuery sends the options as query parameters, and no body.
	InQuery bool
	// Query are further query parameters.
	Query url.Values
	// Body is sent instead of the options where it is not nil.
	Body []byte
}

func deletion(options []DeleteOption) *DeleteRequest {
	request := &DeleteRequest{}
	for _, option := range options {
		option(request)
	}
	return request
}

// body is what the request sends; nil for nothing.
func (d *DeleteRequest) body() any {
	switch {
	case d.Body != nil:
		return d.Body
	case d.InQuery:
		return nil
	case d.Options.Kind != "":
		return d.Options
	}
	return client.WithKind(d.Options)
}

// query are the request's query parameters.
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

// isSilent says that the request leaves the propagation policy to the server.
func (d *DeleteRequest) isSilent() bool {
	return d.Body == nil && d.Options.PropagationPolicy == nil && d.Options.OrphanDependents == nil && //nolint:staticcheck // deprecated, and tested
		!d.Query.Has("propagationPolicy") && !d.Query.Has("orphanDependents")
}

// isOnlyOf reports whether the request is conditional on the resourceVersion that an object has.
func (d *DeleteRequest) isOnlyOf(object *Object) bool {
	only := d.Options.Preconditions
	return only != nil && only.ResourceVersion != nil && *only.ResourceVersion == object.GetResourceVersion()
}

// isDryRun says that the request is for what would be done.
func (d *DeleteRequest) isDryRun() bool { return len(d.Options.DryRun) > 0 || d.Query.Has("dryRun") }

// parameters encodes options as the API server reads them off a query.
func parameters(options runtime.Object) url.Values {
	ginkgo.GinkgoHelper()
	query, err := scheme.ParameterCodec.EncodeParameters(options, schema.GroupVersion{Version: "v1"})
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode %T as query parameters: %v", options, err))
	}
	return query
}

// Orphan asks that dependents stay and lose their reference to the owner (propagationPolicy Orphan).
func Orphan(request *DeleteRequest) {
	request.Options.PropagationPolicy = new(metav1.DeletePropagationOrphan)
}

// Background asks that the owner goes at once and its dependents are collected after it.
func Background(request *DeleteRequest) {
	request.Options.PropagationPolicy = new(metav1.DeletePropagationBackground)
}

// Foreground asks that the owner waits, terminating, for its blocking dependents to go.
func Foreground(request *DeleteRequest) {
	request.Options.PropagationPolicy = new(metav1.DeletePropagationForeground)
}

// Policy asks for a propagation policy by its name, which need not be one.
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

// Grace asks for a grace period, in seconds.
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

// DryRun asks what would happen, and that nothing does.
func DryRun(request *DeleteRequest) { request.Options.DryRun = []string{metav1.DryRunAll} }

// DryRunTwice is DryRun in the body, which is what counts, and in the query, where audit logs show it: for requests about what
// is not the spec's own, which a faulty server must not lose.
func DryRunTwice(request *DeleteRequest) {
	DryRun(request)
	request.Query = client.DryRun()
}

// InQuery sends the options as query parameters, and no body.
func InQuery(request *DeleteRequest) { request.InQuery = true }

// RawBody sends this instead of delete options.
func RawBody(body string) DeleteOption {
	return func(request *DeleteRequest) { request.Body = []byte(body) }
}

// OptionsOf sends delete options as the kind DeleteOptions of another API version: "meta.k8s.io/v1".
func OptionsOf(apiVersion string) DeleteOption {
	return func(request *DeleteRequest) {
		request.Options.TypeMeta = metav1.TypeMeta{APIVersion: apiVersion, Kind: "DeleteOptions"}
	}
}

// WithLabelSelector narrows a collection to what a label selector matches.
func WithLabelSelector(selector string) DeleteOption {
	return func(request *DeleteRequest) { request.List.LabelSelector = selector }
}

// WithFieldSelector narrows a collection to what a field selector matches.
func WithFieldSelector(selector string) DeleteOption {
	return func(request *DeleteRequest) { request.List.FieldSelector = selector }
}

// Limit deletes no more than this many objects of a collection.
func Limit(count int64) DeleteOption {
	return func(request *DeleteRequest) { request.List.Limit = count }
}

func (d *DeleteRequest) preconditions() *metav1.Preconditions {
	if d.Options.Preconditions == nil {
		d.Options.Preconditions = &metav1.Preconditions{}
	}
	return d.Options.Preconditions
}
