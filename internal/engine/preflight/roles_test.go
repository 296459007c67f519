package preflight

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/transport"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestProbeRoles(t *testing.T) {
	byRoles := func(verb string, objects int) bool { return verb == "get" && objects == 2 }
	for _, test := range []struct {
		name string
		// permits reports whether the server permits what to a user for whom there are that many objects of RBAC.
		permits func(verb string, objects int) bool
		// forbids is set where users may not review their own permissions.
		forbids bool
		want    []string
	}{
		{"RBAC", byRoles, false, nil},
		{"RBAC, and no review", byRoles, true, nil},
		{"no RBAC", func(string, int) bool { return true }, false, []string{`RBAC alone does not decide: a user without roles may update secrets in namespace "dcx7k2p9q4-1"`}},
		{"a user needs more", func(string, int) bool { return false }, true, []string{"RBAC alone does not decide: a new Role had no effect within 100ms"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			objects := map[string]any{}
			connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				at := request.URL.Path
				switch {
				case test.forbids && request.Header.Get(transport.ImpersonateUserHeader) != "":
					writer.WriteHeader(http.StatusForbidden)
					_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}`)
				case path.Dir(at) == "/apis/authorization.k8s.io/v1":
					review := authorizationv1.SubjectAccessReview{}
					_ = json.NewDecoder(request.Body).Decode(&review)
					user := review.Spec.User + request.Header.Get(transport.ImpersonateUserHeader)
					review.Status.Allowed = user == "" || test.permits(review.Spec.ResourceAttributes.Verb, len(objects))
					writer.WriteHeader(http.StatusCreated)
					_ = json.NewEncoder(writer).Encode(review)
				case request.Method == http.MethodPost:
					object := client.Object{}
					_ = json.NewDecoder(request.Body).Decode(&object.Object)
					objects[at+"/"+object.GetName()] = object.Object
					writer.WriteHeader(http.StatusCreated)
					_ = json.NewEncoder(writer).Encode(object.Object)
				case objects[at] == nil:
					writer.WriteHeader(http.StatusNotFound)
					_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
				case request.Method == http.MethodGet:
					_ = json.NewEncoder(writer).Encode(objects[at])
				default:
					delete(objects, at)
					_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
				}
			})
			target := Target{
				Config: session.Config{Run: "dcx7k2p9q4", Namespace: "dcx7k2p9q4-1"}, Client: connected,
				Behaviors: []v1alpha1.Behavior{{ID: "permission.dry-run"}, {ID: "finalizers.held"}},
			}

			var causes []string
			for _, found := range probeRoles(t.Context(), target, 100*time.Millisecond) {
				g.Expect(found.behaviors).To(ConsistOf("permission.dry-run"))
				causes = append(causes, found.text)
			}
			g.Expect(causes).To(Equal(test.want))
			g.Expect(objects).To(BeEmpty(), "the Role and its binding are deleted")
		})
	}
}
