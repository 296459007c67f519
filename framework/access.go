package framework

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// denial is how the API server words what its authorizer denies; admission words its refusals differently.
var denial = regexp.MustCompile(`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// blockDenial is how the admission plugin OwnerReferencesPermissionEnforcement words that the user may not update the
// finalizers of the owner.
const blockDenial = "cannot set blockOwnerDeletion"

// missingPermission says which permission a refusal was for: `delete pods in namespace "x"`. It asks the server for
// confirmation, so that a server which refuses what it says is allowed does not get away with a skip. It is empty when
// the refusal had another reason.
func (c *client) missingPermission(ctx context.Context, refused error) string {
	if strings.Contains(refused.Error(), blockDenial) {
		return "set blockOwnerDeletion (update the finalizers subresource of the owner's resource)"
	}
	attributes := deniedAttributes(refused)
	if attributes == nil {
		return ""
	}
	allowed, err := c.allowed(ctx, *attributes)
	if err != nil || allowed {
		return ""
	}
	return permission(*attributes)
}

// deniedAttributes reads off a refusal what was denied; nil when it is no denial of the authorizer's.
func deniedAttributes(refused error) *authorizationv1.ResourceAttributes {
	found := denial.FindStringSubmatch(refused.Error())
	if found == nil {
		return nil
	}
	resource, subresource, _ := strings.Cut(found[2], "/")
	attributes := &authorizationv1.ResourceAttributes{
		Verb: found[1], Resource: resource, Subresource: subresource, Group: found[3], Namespace: found[4],
	}
	if status := apierrors.APIStatus(nil); errors.As(refused, &status) && status.Status().Details != nil {
		attributes.Name = status.Status().Details.Name
	}
	return attributes
}

// allowed asks the server whether the credentials allow something (SelfSubjectAccessReview, open to every user).
func (c *client) allowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	answer := c.ask(ctx, request{
		verb: http.MethodPost,
		path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		body: review,
	})
	if answer.Err != nil {
		return false, fmt.Errorf("ask whether it is allowed to %s: %w", permission(attributes), answer.Err)
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object.Object, &review)
	return review.Status.Allowed, err
}

// permission words a permission as a person would: delete pods/status in namespace "x".
func permission(attributes authorizationv1.ResourceAttributes) string {
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
