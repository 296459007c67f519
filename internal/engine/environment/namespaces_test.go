package environment

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

// answering answers like an API server that serves its version, and everything else with one Status.
func answering(code int, reason string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/version" {
			_, _ = fmt.Fprint(writer, `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`)
			return
		}
		writer.WriteHeader(code)
		_, _ = fmt.Fprintf(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"no"}`, code, reason)
	}
}

func TestSetup_UnusableNamespace(t *testing.T) {
	const named, rbac = "--namespace NAME", "deploy/rbac"
	dryRuns := session.Settings{NoCreate: true}
	for _, test := range []struct {
		name    string
		code    int
		reason  string
		options Options
		want    []string
	}{
		{"a missing namespace", http.StatusNotFound, "NotFound", Options{SharedNamespace: "absent"}, []string{`namespace "absent" does not exist; create it`, named}},
		{"a missing namespace for dry-runs", http.StatusNotFound, "NotFound", Options{SharedNamespace: "absent", Settings: dryRuns}, []string{`namespace "absent" does not exist`, named}},
		{"no permission to create namespaces", http.StatusForbidden, "Forbidden", Options{}, []string{"create namespace", named, rbac}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			config, _ := apiservertest.Start(t, answering(test.code, test.reason))
			test.options.Run = "dcb2c4d5f6"
			_, err := Setup(t.Context(), config, test.options)
			g.Expect(err).To(MatchError(ErrRefused))
			for _, want := range test.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}

func TestFindLeftovers_Forbidden(t *testing.T) {
	g := NewWithT(t)
	forbidden, _ := apiservertest.Start(t, answering(http.StatusForbidden, "Forbidden"))
	_, err := FindLeftovers(t.Context(), forbidden, "")
	g.Expect(err).To(MatchError(And(ContainSubstring("list the namespaces of runs"), ContainSubstring("--namespace NAME"), ContainSubstring("deploy/rbac"))))

	absent, _ := apiservertest.Start(t, answering(http.StatusNotFound, "NotFound"))
	_, err = FindLeftovers(t.Context(), absent, "absent")
	g.Expect(err).To(MatchError(ErrNoNamespace))
}
