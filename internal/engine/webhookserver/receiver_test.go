package webhookserver

import (
	"testing"

	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/exposure"
)

func TestReceiver_Service(t *testing.T) {
	g := NewWithT(t)
	server, err := StartWebhook("webhook.dcabc-1.svc", "127.0.0.1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })
	receiver := Receiver{server, &exposure.Service{Namespace: "dcabc-1", Name: "webhook"}, nil}
	g.Expect(receiver.ClientConfig()).To(And(HaveField("URL", BeNil()), HaveField("Service", HaveValue(Equal(registrationv1.ServiceReference{
		Namespace: "dcabc-1", Name: "webhook", Path: new(server.Path()), Port: new(int32(exposure.Port)),
	})))))
	g.Expect(receiver.Place()).NotTo(ContainSubstring(server.Path()))
}
