package client

import (
	"errors"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func forbidden(name, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Name: name},
	}}
}

// The texts are those of an API server.
func TestDeniedAttributes(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused error
		want    *authorizationv1.ResourceAttributes
		words   string
	}{
		{
			"a core resource in a namespace",
			forbidden("", `configmaps is forbidden: User "eve" cannot create resource "configmaps" in API group "" in the namespace "dc-1"`),
			&authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: "dc-1"},
			`create configmaps in namespace "dc-1"`,
		},
		{
			"an object by name",
			forbidden("pod-x", `pods "pod-x" is forbidden: User "eve" cannot delete resource "pods" in API group "" in the namespace "dc-1"`),
			&authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Namespace: "dc-1", Name: "pod-x"},
			`delete pods in namespace "dc-1"`,
		},
		{
			"a subresource",
			forbidden("pod-x", `pods "pod-x" is forbidden: User "eve" cannot patch resource "pods/status" in API group "" in the namespace "dc-1"`),
			&authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "dc-1", Name: "pod-x"},
			`patch pods/status in namespace "dc-1"`,
		},
		{
			"at the cluster scope, in a group",
			forbidden("", `customresourcedefinitions.apiextensions.k8s.io is forbidden: User "system:serviceaccount:a:b" cannot list resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`),
			&authorizationv1.ResourceAttributes{Verb: "list", Resource: "customresourcedefinitions", Group: "apiextensions.k8s.io"},
			"list customresourcedefinitions.apiextensions.k8s.io",
		},
		{
			"with an authorizer's remark",
			forbidden("", `replicasets.apps is forbidden: User "eve" cannot watch resource "replicasets" in API group "apps" in the namespace "dc-1": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`),
			&authorizationv1.ResourceAttributes{Verb: "watch", Resource: "replicasets", Group: "apps", Namespace: "dc-1"},
			`watch replicasets.apps in namespace "dc-1"`,
		},
		{
			"what a quota refuses",
			forbidden("pod-x", `pods "pod-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`),
			nil, "",
		},
		{
			"what an admission plugin refuses",
			forbidden("x", `configmaps "x" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on`),
			nil, "",
		},
		{"no refusal of a server's", errors.New("connection refused"), nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got := deniedAttributes(test.refused)
			g.Expect(got).To(Equal(test.want))
			if got != nil {
				g.Expect(permission(*got)).To(Equal(test.words))
			}
		})
	}
}
