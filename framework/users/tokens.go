package users

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/framework"
)

// tokenStock is the number of tokens requested at once: enough for an API server that processes a deletion some tenths of a second late.
const tokenStock = 5

// Tokens are tokens of a ServiceAccount that are bound to the same object. An API server caches for 10 s that it accepted a token, so each
// review uses another one. When all were accepted they are reused; the cached responses expire within 10 s.
type Tokens struct {
	cluster  *framework.Cluster
	stock    []token
	reviewed int
}

// token is a function, so that printing values never prints a token.
type token func() string

// RequestTokens requests tokens of a ServiceAccount: bound to a Pod that runs as this account, to a Secret, to a Node, or to the account alone
// if it is given twice.
func RequestTokens(ctx context.Context, c *framework.Cluster, account, bound *framework.Object) *Tokens {
	ginkgo.GinkgoHelper()
	request := authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
	}
	if bound.GetKind() != account.GetKind() {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: bound.GetAPIVersion(), Kind: bound.GetKind(), Name: bound.GetName(), UID: bound.GetUID(),
		}
	}
	tokens := &Tokens{cluster: c}
	for range tokenStock {
		response := framework.Require(c.Send(ctx, account, framework.Request{Method: http.MethodPost, Subresource: "token", Body: request}))
		secret, _, _ := unstructured.NestedString(response.Object.Object, "status", "token")
		if secret == "" {
			ginkgo.Fail(fmt.Sprintf("the response to %s contains no token", response.Request))
		}
		tokens.stock = append(tokens.stock, func() string { return secret })
	}
	return tokens
}

// Authenticated lets the API server review the next token (TokenReview, which stores nothing), and reports whether it is valid.
func (t *Tokens) Authenticated(ctx context.Context) bool {
	ginkgo.GinkgoHelper()
	next := t.stock[t.reviewed%len(t.stock)]
	t.reviewed++
	review := &framework.Object{Object: map[string]any{
		"apiVersion": authenticationv1.SchemeGroupVersion.String(), "kind": "TokenReview",
		"spec": map[string]any{"token": next()},
	}}
	response := framework.Require(t.cluster.Check(ctx, t.cluster.Session().Client.Create(ctx, review)))
	authenticated, _, _ := unstructured.NestedBool(response.Object.Object, "status", "authenticated")
	return authenticated
}
