package webhookserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
)

// review is a review of a delete.
const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "name": "owner", "operation": "DELETE"}}`

// callerOf returns a client that trusts a server, as the API server does.
func callerOf(t *testing.T, server *webhookserver.Server) *http.Client {
	t.Helper()
	trusted := x509.NewCertPool()
	NewWithT(t).Expect(trusted.AppendCertsFromPEM(server.ClientConfig().CABundle)).To(BeTrue())
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
}

func TestServer_ClientConfig(t *testing.T) {
	g := NewWithT(t)
	server, err := webhookserver.StartWebhook("127.0.0.1", "127.0.0.1", &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, asked admission.Request) admission.Response {
		return admission.Denied("not " + asked.Name)
	})})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })
	config := server.ClientConfig()
	g.Expect(string(config.CABundle)).NotTo(ContainSubstring("PRIVATE KEY"))

	response, err := callerOf(t, server).Post(*config.URL, "application/json", strings.NewReader(review))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	answered := admissionv1.AdmissionReview{}
	g.Expect(json.Unmarshal(content, &answered)).To(Succeed())
	g.Expect(answered.Response.Allowed).To(BeFalse())
	g.Expect(answered.Response.Result.Message).To(Equal("not owner"))
}

func TestStartWebhook_UnknownPath(t *testing.T) {
	g := NewWithT(t)
	received := 0
	server, err := webhookserver.StartWebhook("127.0.0.1", "127.0.0.1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received++ }))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })
	other, err := webhookserver.StartWebhook("127.0.0.1", "127.0.0.1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = other.Close() })
	g.Expect(server.Path()).To(MatchRegexp("^/[a-z2-7]{26,}$"), "26 digits of 5 bits are 128 bits")
	g.Expect(validation.IsDNS1123Label(server.Path()[1:])).To(BeEmpty(), "as the API server requires of a Service's path")
	g.Expect(server.ClientConfig().URL).To(HaveValue(Equal(server.Place() + server.Path())))
	g.Expect(server.Place()).NotTo(ContainSubstring(server.Path()), "messages contain the place")

	caller := callerOf(t, server)
	for _, path := range []string{
		"", "/", "/review", other.Path(), strings.ToUpper(server.Path()), server.Path() + "/", server.Path() + "a", "/x/.." + server.Path(), server.Path()[:26],
	} {
		response, err := caller.Post(server.Place()+path, "application/json", strings.NewReader(review))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(http.StatusNotFound), path)
		g.Expect(response.Close).To(BeTrue(), "the connection is not kept")
	}
	g.Expect(received).To(BeZero())
}

func TestStartWebhook_LargeRequest(t *testing.T) {
	const size = 256 << 20
	for name, test := range map[string]struct {
		path func(*webhookserver.Server) string
		code int
		most uint64
	}{
		"at the path of the webhook": {(*webhookserver.Server).Path, http.StatusRequestEntityTooLarge, 64 << 20},
		"at another path":            {func(*webhookserver.Server) string { return "/" }, http.StatusNotFound, 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, err := webhookserver.StartWebhook("127.0.0.1", "127.0.0.1", http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
				if _, err := io.ReadAll(request.Body); errors.As(err, new(*http.MaxBytesError)) {
					response.WriteHeader(http.StatusRequestEntityTooLarge)
				}
			}))
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = server.Close() })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			response, err := callerOf(t, server).Post(server.Place()+test.path(server), "application/json", io.LimitReader(endless{}, size))
			runtime.ReadMemStats(&after)
			if err == nil { // the server may also close the connection while the client still sends
				g.Expect(response.Body.Close()).To(Succeed())
				g.Expect(response.StatusCode).To(Equal(test.code))
			}
			g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", test.most))
		})
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(into []byte) (int, error) { return len(into), nil }

func TestStart_Ports(t *testing.T) {
	g := NewWithT(t)
	addresses := map[string]bool{}
	for range 3 {
		server, err := webhookserver.Start("127.0.0.1", "127.0.0.1", nil)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = server.Close() })
		address := server.Place()
		g.Expect(address).To(MatchRegexp("^https://127.0.0.1:29[45][0-9][0-9]$"))
		addresses[address] = true
	}
	g.Expect(addresses).To(HaveLen(3))
}

func TestStart_UnknownHost(t *testing.T) {
	_, err := webhookserver.Start("nowhere.invalid", "nowhere.invalid", nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("listen for a webhook on nowhere.invalid")))
}

func TestStart_ForeignAddress(t *testing.T) {
	_, err := webhookserver.Start("192.0.2.7", "192.0.2.7", nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("listen for a webhook on 192.0.2.7")))
}
