package clusters

import (
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
)

func TestFromRESTConfig(t *testing.T) {
	g := NewWithT(t)
	_, authority, err := certificates.ForServer("127.0.0.1")
	g.Expect(err).NotTo(HaveOccurred())
	given := &rest.Config{
		Host: "https://cluster.example.com:6443/prefix", Timeout: 7 * time.Second, DisableCompression: true,
		BearerToken: "hunter2", TLSClientConfig: rest.TLSClientConfig{CAData: authority, ServerName: "inner"},
		Impersonate: rest.ImpersonationConfig{UserName: "jane", UID: "7", Groups: []string{"staff"}, Extra: map[string][]string{"scope": {"all"}}},
		ExecProvider: &clientcmdapi.ExecConfig{
			Command: "login", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		},
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example.com:3128"}),
	}

	cluster, err := FromRESTConfig("mine", given)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Name).To(Equal("mine"))
	g.Expect(cluster.Provider.RESTConfig().Timeout).To(Equal(7 * time.Second))
	read, err := clientcmd.RESTConfigFromKubeConfig(cluster.Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	proxy, err := read.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "cluster.example.com:6443"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proxy.Host).To(Equal("proxy.example.com:3128"))
	g.Expect(read.Host).To(Equal("https://cluster.example.com:6443/prefix"))
	g.Expect(read.TLSClientConfig).To(Equal(given.TLSClientConfig))
	g.Expect(read.Impersonate).To(Equal(given.Impersonate))
	g.Expect(read.BearerToken).To(Equal(given.BearerToken))
	g.Expect(read.DisableCompression).To(BeTrue())
	g.Expect(read.ExecProvider.Command).To(Equal("login"))
}

func TestFromRESTConfig_ProcessOnly(t *testing.T) {
	for _, test := range []struct {
		name   string
		config rest.Config
		says   string
	}{
		{"a transport", rest.Config{Host: "example.com", Transport: http.DefaultTransport}, "worker processes cannot use"},
		{"a wrapper", rest.Config{Host: "example.com", WrapTransport: func(next http.RoundTripper) http.RoundTripper { return next }}, "worker processes cannot use"},
		{"a dialer", rest.Config{Host: "example.com", Dial: (&net.Dialer{}).DialContext}, "worker processes cannot use"},
		{"a provider", rest.Config{Host: "example.com", AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc"}}, `"oidc"`},
		{"no address", rest.Config{Host: "http://[::1"}, "read the address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := FromRESTConfig("mine", &test.config)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.says)))
		})
	}
}

func TestFromRESTConfig_NoScheme(t *testing.T) {
	g := NewWithT(t)
	_, authority, err := certificates.ForServer("127.0.0.1")
	g.Expect(err).NotTo(HaveOccurred())
	cluster, err := FromRESTConfig("mine", &rest.Config{Host: "127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Provider.RESTConfig().Host).To(Equal("https://127.0.0.1:6443"))
	g.Expect(cluster.Provider.RESTConfig().Timeout).To(BeZero())
}
