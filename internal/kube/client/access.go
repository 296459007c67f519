package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// ErrNoNamespace means that the namespace of --namespace does not exist.
var ErrNoNamespace = errors.New("does not exist; create it, or choose another with --namespace NAME")

// MissingPermission returns the permission that the credentials lack for a forbidden request (see Forbidden): `delete pods in namespace
// "x"`. It asks the server's authorizer, so a server cannot turn a wrong refusal into a skip. It is empty when the refusal had another
// reason, such as an admission plugin.
func (c *Client) MissingPermission(ctx context.Context, refused Response) string {
	attributes := refused.sent.attributes()
	if attributes == nil {
		return ""
	}
	needs := append(binding(*attributes), c.blocking(refused.sent)...)
	if apierrors.IsForbidden(refused.Err) {
		needs = append([]authorizationv1.ResourceAttributes{*attributes}, needs...)
	}
	for _, needed := range needs {
		if allowed, err := c.Allowed(ctx, needed); err == nil && !allowed {
			return Permission(needed)
		}
	}
	return ""
}

// blocking returns the permissions that the admission plugin OwnerReferencesPermissionEnforcement requires: to update the finalizers of
// each owner that a reference with blockOwnerDeletion names.
func (c *Client) blocking(request Request) []authorizationv1.ResourceAttributes {
	var needed []authorizationv1.ResourceAttributes
	for _, reference := range request.ownerReferences() {
		if reference.BlockOwnerDeletion == nil || !*reference.BlockOwnerDeletion {
			continue
		}
		owner := &Object{}
		owner.SetGroupVersionKind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
		owner.SetNamespace(request.Object.Namespace)
		if collection, err := c.CollectionOf(owner); err == nil {
			needed = append(needed, authorizationv1.ResourceAttributes{
				Verb: "update", Group: collection.Resource.Group, Resource: collection.Resource.Resource,
				Subresource: "finalizers", Namespace: collection.Namespace, Name: reference.Name,
			})
		}
	}
	return needed
}

// ownerReferences are those in the body of a request. The body is read as JSON, because applied objects contain Go types.
func (r Request) ownerReferences() []metav1.OwnerReference {
	encoded, err := json.Marshal(r.Body)
	if err != nil {
		return nil
	}
	content := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(encoded, content); err != nil {
		return nil // not an object, such as a JSON patch
	}
	return content.OwnerReferences
}

// binding is the additional permission that is required to write an allocation to the status of a ResourceClaim, since Kubernetes 1.36
// (AuthorizedForBinding in pkg/registry/resource/utils.go).
func binding(written authorizationv1.ResourceAttributes) []authorizationv1.ResourceAttributes {
	if written.Group != resourcev1.GroupName || written.Resource != "resourceclaims" || written.Subresource != "status" {
		return nil
	}
	return []authorizationv1.ResourceAttributes{{
		Verb: written.Verb, Group: written.Group, Resource: written.Resource, Subresource: "binding",
	}}
}

// NotByRBAC is the beginning of the reasons why a spec is skipped when Roles do not decide what users may do.
const NotByRBAC = "RBAC alone does not decide: "

// Allowed checks a permission with a SelfSubjectAccessReview, which every user may create.
func (c *Client) Allowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	if err := c.review(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review); err != nil {
		return false, fmt.Errorf("check the permission to %s: %w", Permission(attributes), err)
	}
	return review.Status.Allowed, nil
}

// AllowedFor checks a permission of another user, as whom a client acts: with the user's own review, or with a SubjectAccessReview of the
// credentials where users may not create their own, because the ClusterRoleBinding system:basic-user is missing.
func (c *Client) AllowedFor(ctx context.Context, acting *Client, user rest.ImpersonationConfig, attributes authorizationv1.ResourceAttributes) (bool, error) {
	if allowed, err := acting.Allowed(ctx, attributes); !apierrors.IsForbidden(err) {
		return allowed, err
	}
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &attributes, User: user.UserName, Groups: append(slices.Clone(user.Groups), "system:authenticated"),
		},
	}
	if err := c.review(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review); err != nil {
		return false, fmt.Errorf("check the permission of %s to %s: %w", user.UserName, Permission(attributes), err)
	}
	return review.Status.Allowed, nil
}

// WhoAmI returns the username that the server derives from the credentials (SelfSubjectReview, which every user may create).
func (c *Client) WhoAmI(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
	}
	if err := c.review(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review); err != nil {
		return "", fmt.Errorf("read the user of the credentials: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// review posts a review, which stores nothing, and decodes the response into it.
func (c *Client) review(ctx context.Context, path string, review any) error {
	response := c.Send(ctx, Request{Method: http.MethodPost, Path: path, Body: review})
	if response.Err != nil {
		return response.Err
	}
	return json.Unmarshal(response.Body, review)
}

// Permission describes a permission: delete pods/status in namespace "x".
func Permission(attributes authorizationv1.ResourceAttributes) string {
	resource := attributes.Resource
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	if attributes.Group != "" {
		resource += "." + attributes.Group
	}
	if attributes.Namespace != "" {
		return fmt.Sprintf("%s %s in namespace %q", attributes.Verb, resource, attributes.Namespace)
	}
	return attributes.Verb + " " + resource
}
