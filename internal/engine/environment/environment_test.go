package environment

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// asking returns a client of a server with a handler, and the number of its requests.
func asking(t *testing.T, handler http.HandlerFunc) (*client.Client, *atomic.Int32) {
	t.Helper()
	config, asked := apiservertest.Start(t, handler)
	connected, err := client.New(config, client.NewGuard("dcx7k2p9q4"))
	if err != nil {
		t.Fatal(err)
	}
	return connected, asked
}

func TestServerVersion(t *testing.T) {
	const denied = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"User \"eve\" cannot get path \"/version\""}`
	const unknown = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized","message":"Unauthorized"}`
	const overloaded = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"reason":"ServiceUnavailable","message":"not ready yet"}`
	const stranger = "is not that of a Kubernetes API server"
	for _, test := range []struct {
		name    string
		status  int
		body    string
		version string
		want    string
	}{
		{"an API server", 200, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`, "v1.36.3", ""},
		{"one that keeps its version to itself", 403, denied, "", ""},
		{"one that does not know the credentials", 401, unknown, "", "does not accept the credentials of this context (401)"},
		{"one that is not ready", 503, overloaded, "", "not ready yet"},
		{"a website", 200, "<html>", "", "(200) " + stranger},
		{"a website behind a login", 403, "<html>", "", "(403) " + stranger},
		{"a website without such a page", 404, "<html>", "", "(404) " + stranger},
		{"another API", 200, `{"version":"2.1"}`, "", "(200) " + stranger},
		{"silence", 200, "", "", "(200) " + stranger},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			connected, _ := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
				writer.WriteHeader(test.status)
				_, _ = fmt.Fprint(writer, test.body)
			})
			version, err := serverVersion(t.Context(), connected)
			g.Expect(version).To(Equal(test.version))
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestSetup_Unreachable(t *testing.T) {
	_, err := Setup(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, Options{Run: NewRunID()})
	NewWithT(t).Expect(err).To(And(MatchError(ErrUnreachable), MatchError(And(
		ContainSubstring("https://127.0.0.1:1"), ContainSubstring("connection refused")))))
}

func TestWithoutUsers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(withoutUsers(nil)).To(Equal(map[string]any{"spec": map[string]any{
		"securityContext": map[string]any{"runAsUser": nil, "runAsGroup": nil, "fsGroup": nil},
	}}))
	chosen := map[string]any{"spec": map[string]any{"securityContext": map[string]any{"fsGroup": int64(7)}}}
	g.Expect(withoutUsers(chosen)).To(HaveKeyWithValue("spec", HaveKeyWithValue("securityContext", HaveKeyWithValue("fsGroup", int64(7)))))
	g.Expect(chosen["spec"]).To(HaveKeyWithValue("securityContext", HaveLen(1)), "the settings stay as they are")
}
