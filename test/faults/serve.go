package faults

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Serve serves a proxy in front of a server until the test ends, and returns it with the path of a kubeconfig. Clients of the proxy need no
// credentials.
func Serve(t testing.TB, config *rest.Config, injected Faults) (proxy *Proxy, kubeconfig string) {
	t.Helper()
	proxy, err := New(config, injected)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, stop, err := proxy.listen(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return proxy, kubeconfig
}

// Listen is Serve without a test: it returns the path of a kubeconfig in a directory, and a function that stops the proxy.
func Listen(config *rest.Config, injected Faults, folder string) (kubeconfig string, stop func(), err error) {
	proxy, err := New(config, injected)
	if err != nil {
		return "", nil, err
	}
	return proxy.listen(folder)
}

func (p *Proxy) listen(folder string) (kubeconfig string, stop func(), err error) {
	server := httptest.NewServer(p)
	stop = func() {
		server.CloseClientConnections()
		server.Close()
	}
	written := clientcmdapi.NewConfig()
	written.Clusters["faults"] = &clientcmdapi.Cluster{Server: server.URL}
	written.Contexts["faults"] = &clientcmdapi.Context{Cluster: "faults"}
	written.CurrentContext = "faults"
	kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*written, kubeconfig); err != nil {
		stop()
		return "", nil, err
	}
	return kubeconfig, stop, nil
}

// Passed returns the number of requests that were forwarded and whose responses were returned.
func (p *Proxy) Passed() int { return p.Seen()[string(passed)] }
