package weather

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Serve serves a proxy in front of a server until the test ends, and returns it with the path of a kubeconfig for it. Who asks the
// proxy needs no credentials.
func Serve(t testing.TB, config *rest.Config, weather Weather) (proxy *Proxy, kubeconfig string) {
	t.Helper()
	proxy, err := New(config, weather)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	written := clientcmdapi.NewConfig()
	written.Clusters["weather"] = &clientcmdapi.Cluster{Server: server.URL}
	written.Contexts["weather"] = &clientcmdapi.Context{Cluster: "weather"}
	written.CurrentContext = "weather"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*written, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return proxy, kubeconfig
}

// Passed says how many requests were passed on, and their responses, too.
func (p *Proxy) Passed() int { return p.Seen()[string(passed)] }
