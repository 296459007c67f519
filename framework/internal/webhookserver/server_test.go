package webhookserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/webhookserver"
)

func TestReviewsAreReceivedByWhomTheConfigurationTrusts(t *testing.T) {
	g := NewWithT(t)
	server, err := webhookserver.Start("127.0.0.1", &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, asked admission.Request) admission.Response {
		return admission.Denied("not " + asked.Name)
	})})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })
	config, trusted := server.ClientConfig(), x509.NewCertPool()
	g.Expect(trusted.AppendCertsFromPEM(config.CABundle)).To(BeTrue())
	g.Expect(string(config.CABundle)).NotTo(ContainSubstring("PRIVATE KEY"))

	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "name": "owner", "operation": "DELETE"}}`
	response, err := caller.Post(*config.URL, "application/json", strings.NewReader(review))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	answered := admissionv1.AdmissionReview{}
	g.Expect(json.Unmarshal(content, &answered)).To(Succeed())
	g.Expect(answered.Response.Allowed).To(BeFalse())
	g.Expect(answered.Response.Result.Message).To(Equal("not owner"))
}

func TestPortsAreOfAFew(t *testing.T) {
	g := NewWithT(t)
	addresses := map[string]bool{}
	for range 3 {
		server, err := webhookserver.Start("127.0.0.1", nil)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = server.Close() })
		address := *server.ClientConfig().URL
		g.Expect(address).To(MatchRegexp("^https://127.0.0.1:29[45][0-9][0-9]$"))
		addresses[address] = true
	}
	g.Expect(addresses).To(HaveLen(3))
}

func TestAHostThatIsNotFoundIsSaid(t *testing.T) {
	_, err := webhookserver.Start("nowhere.invalid", nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("listen for a webhook on nowhere.invalid")))
}

func TestAnAddressOfAnotherMachineIsSaid(t *testing.T) {
	_, err := webhookserver.Start("192.0.2.7", nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("listen for a webhook on 192.0.2.7")))
}
