package run

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestValidate_WebhookHost(t *testing.T) {
	for _, test := range []struct{ host, want string }{
		{"", ""},
		{"127.0.0.1", ""},
		{"localhost", ""},
		{"no such host", "it is no IP address and no DNS name"},
		{"https://127.0.0.1", "it is no IP address and no DNS name; write it without a scheme and a port"},
		{"127.0.0.1:29443", "it is no IP address and no DNS name"},
		{"[::1]", "it is no IP address and no DNS name"},
		{"0.0.0.0", "no API server can connect to it"},
		{"::", "no API server can connect to it"},
		{"224.0.0.1", "no API server can connect to it"},
		{"192.0.2.1", "webhooks cannot listen there (bind: "},
		{"runner.invalid", "the name cannot be resolved ("},
	} {
		t.Run(test.host, func(t *testing.T) {
			g := NewWithT(t)
			options := NewOptions()
			options.Settings.WebhookHost = test.host
			err := options.checkWebhookHost(t.Context())
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(HavePrefix("--webhook-host "), ContainSubstring(test.want), Not(ContainSubstring("\n")))))
		})
	}
}

func TestValidate_Namespace(t *testing.T) {
	g := NewWithT(t)
	options := NewOptions()
	options.Namespace = "Not A Name"
	g.Expect(options.Validate()).To(MatchError(`--namespace "Not A Name" is not the name of a namespace`))
	options.Namespace = "a-name"
	g.Expect(options.checkNamespace()).To(Succeed())
}
