package manifest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
)

// finderOn is a finder for a server that refuses what is created with a Status, and allows nothing.
func finderOn(t *testing.T, code int, reason string) *Finder {
	t.Helper()
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/selfsubjectaccessreviews") {
			_, _ = fmt.Fprint(writer, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":false}}`)
			return
		}
		writer.WriteHeader(code)
		_, _ = fmt.Fprintf(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"no"}`, code, reason)
	})
	finder, err := NewFinder(config, overlay.Overlay{})
	if err != nil {
		t.Fatal(err)
	}
	return finder
}

func TestResource_Unknown(t *testing.T) {
	finder := finderOn(t, http.StatusNotFound, "NotFound")
	for _, test := range []struct{ name, want string }{
		{"confgmaps", "`kubectl api-resources` lists the available ones; did you mean \"configmaps\"?"},
		{"replicaset.apss", `did you mean "replicasets.apps"?`},
		{"configmaps/v2", "configmaps is served in v1"},
		{"replicasets.apps/v1beta1", "replicasets.apps is served in v1"},
		{"gadgets.acme.io", "`kubectl api-resources` lists the available ones"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := finder.Resource(test.name)
			g := NewWithT(t)
			g.Expect(err).To(MatchError(ErrUnknown))
			g.Expect(err.Error()).To(HaveSuffix(test.want))
		})
	}
}

func TestTry_DryRunImpossible(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	for _, test := range []struct {
		name   string
		code   int
		reason string
		is     error
		want   string
	}{
		{"a permission", http.StatusForbidden, "Forbidden", ErrForbidden, `missing permission: create configmaps in namespace "there"`},
		{"the namespace", http.StatusNotFound, "NotFound", ErrNoNamespace, `namespace "there" does not exist; create it, or choose another with --namespace NAME`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := finderOn(t, test.code, test.reason).Try(t.Context(), object, "there")
			g.Expect(err).To(MatchError(test.is))
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
