package environment

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestResponds(t *testing.T) {
	const unavailable = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcdserver: request timed out"}`
	const unknown = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized","message":"Unauthorized"}`
	for _, test := range []struct {
		name            string
		stored, version int
		body            string
		want            error
		says            string
	}{
		{"there is no such object", 404, 200, `{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}`, nil, ""},
		{"the credentials may not read it", 403, 200, `{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden"}`, nil, ""},
		{"the server is busy", 429, 200, `{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests"}`, nil, ""},
		{"the credentials are rejected", 401, 401, unknown, ErrCredentials, "credentials rejected (401)"},
		{"storage does not respond", 500, 200, unavailable, ErrStorage, "no response from storage (etcd): HTTP status 500: etcdserver: request timed out"},
		{"a proxy responds, and nothing behind it", 502, 502, "", nil, "HTTP status 502"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				status := test.stored
				if request.URL.Path == "/version" {
					status = test.version
				}
				writer.WriteHeader(status)
				_, _ = fmt.Fprint(writer, test.body)
			})
			environment := &Environment{client: connected, options: Options{SharedNamespace: "n"}}
			err := environment.Responds(t.Context())
			if test.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(HavePrefix(test.says)))
			if test.want != nil {
				g.Expect(err).To(MatchError(test.want))
			}
		})
	}
}
