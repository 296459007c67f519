package users

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

// A hardened cluster has no ClusterRoleBinding system:basic-user: its users cannot review their own access.
func TestSubjectAllowed(t *testing.T) {
	const own, run = "selfsubjectaccessreviews", "subjectaccessreviews"
	for _, test := range []struct {
		name      string
		permitted []string
		allowed   []string
		want      bool
		forbidden bool
	}{
		{"the user's own review", []string{own, run}, []string{own}, true, false},
		{"the user's own review denies", []string{own, run}, []string{run}, false, false},
		{"the run's review", []string{run}, []string{run}, true, false},
		{"the run's review denies", []string{run}, nil, false, false},
		{"no review", nil, []string{own, run}, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
				resource := path.Base(request.URL.Path)
				if !slices.Contains(test.permitted, resource) {
					writer.WriteHeader(http.StatusForbidden)
					_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}`)
					return
				}
				if resource == run {
					review := authorizationv1.SubjectAccessReview{}
					g.Expect(json.NewDecoder(request.Body).Decode(&review)).To(Succeed())
					g.Expect(review.Spec).To(And(HaveField("User", "alice"), HaveField("Groups", ConsistOf("team", "system:authenticated"))))
				}
				writer.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(writer, `{"kind":"Review","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, slices.Contains(test.allowed, resource))
			})
			connected, err := session.Connect(config, session.Config{Run: "dcb2c4d5f6", Worker: 2, Namespace: "dcb2c4d5f6-2"})
			g.Expect(err).NotTo(HaveOccurred())
			user := rest.ImpersonationConfig{UserName: "alice", Groups: []string{"team"}}
			acting, err := connected.Harness.As(user)
			g.Expect(err).NotTo(HaveOccurred())

			allowed, err := subject{acting, user}.allowed(t.Context(), framework.NewCluster(connected, "abc"), authorizationv1.ResourceAttributes{Verb: "get"})

			g.Expect(allowed).To(Equal(test.want))
			g.Expect(apierrors.IsForbidden(err)).To(Equal(test.forbidden))
		})
	}
}
