package preflight

import "testing"

func TestWebhookHost(t *testing.T) {
	for _, test := range []struct{ name, named, server, pod, want string }{
		{"chosen by the user", "192.0.2.7", "https://127.0.0.1:6443", "", "192.0.2.7"},
		{"a server on loopback", "", "https://127.0.0.1:6443", "", "127.0.0.1"},
		{"on loopback by name", "", "https://localhost:6443", "", "127.0.0.1"},
		{"on loopback, version 6", "", "https://[::1]:6443", "", "127.0.0.1"},
		{"a server elsewhere", "", "https://api.example.com", "", ""},
		{"inside the cluster", "", "https://10.0.0.1:443", "10.1.2.3", "10.1.2.3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("POD_IP", test.pod)
			if got := WebhookHost(test.named, test.server); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}
