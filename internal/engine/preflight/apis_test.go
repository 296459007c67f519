package preflight

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

func TestAPIs_UnreadableResource(t *testing.T) {
	g := NewWithT(t)
	connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/apis/apiregistration.k8s.io/v1/apiservices":
			_, _ = fmt.Fprint(writer, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIServiceList","items":[]}`)
		case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
			_, _ = fmt.Fprint(writer, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","items":[{
				"metadata":{"name":"things.example.io"},"spec":{"group":"example.io","names":{"plural":"things","kind":"Thing"},"scope":"Namespaced",
				"conversion":{"strategy":"Webhook"},"versions":[{"name":"v1","served":true}]}}]}`)
		case "/apis/example.io/v1/namespaces/team-a/things":
			writer.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":400,"reason":"BadRequest","message":"conversion webhook failed"}`)
		}
	})
	target := Target{Config: session.Config{Namespace: "team-a"}, Client: connected}
	finding, err := apisOf(t.Context(), target).check(t.Context(), target)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(finding).To(And(HaveField("Severity", v1alpha1.Notice), HaveField("Effect", "namespaces of the cluster are deleted slowly"),
		HaveField("Cause", "things.example.io cannot be listed (conversion webhook failed)")))
}
