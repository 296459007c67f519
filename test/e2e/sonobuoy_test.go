package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/sonobuoy"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// sonobuoyIn returns Sonobuoy's binary.
func sonobuoyIn(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(root(t), "bin", "sonobuoy")
	if _, err := os.Stat(binary); err != nil {
		t.Skipf("it was not built (%v): make bin/sonobuoy does it", err)
	}
	return binary
}

func TestSonobuoy_Plugin(t *testing.T) {
	clustertest.Long(t)
	g := NewWithT(t)
	binary := sonobuoyIn(t)
	generate := exec.CommandContext(t.Context(), binary, "gen", "--plugin", filepath.Join(root(t), "deploy", "sonobuoy", "plugin.yaml"),
		"--plugin-image", "deletion-conformance:example.com/runner:v1", "--kubernetes-version", "v1.37.0")
	manifests, err := generate.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(manifests)).To(ContainSubstring("image: example.com/runner:v1"))
}

// aggregator is Sonobuoy's: what it has received.
type aggregator struct {
	mu       sync.Mutex
	progress map[string]any
	results  []byte
}

func (a *aggregator) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/progress/global/deletion-conformance"):
		a.progress = nil
		_ = json.Unmarshal(body, &a.progress)
	case strings.HasPrefix(r.URL.Path, "/api/v1/results/global/deletion-conformance"):
		a.results = body
	}
}

// startWorker starts Sonobuoy's worker of a plugin in a directory, and returns its aggregator and the port for the progress.
func startWorker(t *testing.T, binary, results string) (received *aggregator, port string, wait func() error) {
	t.Helper()
	g := NewWithT(t)
	ca, err := certificates.New(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	certificate, key, err := ca.Server("aggregator", net.IPv4(127, 0, 0, 1))
	g.Expect(err).NotTo(HaveOccurred())
	served, err := tls.LoadX509KeyPair(certificate, key)
	g.Expect(err).NotTo(HaveOccurred())
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.Certificate())
	received = &aggregator{}
	server := httptest.NewUnstartedServer(received)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{served}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	worker, err := ca.Client("worker")
	g.Expect(err).NotTo(HaveOccurred())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	port = fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	g.Expect(free.Close()).To(Succeed())

	command := exec.CommandContext(t.Context(), binary, "worker", "global")
	command.Env = []string{
		"AGGREGATOR_URL=" + server.URL, "RESULT_TYPE=deletion-conformance", "SONOBUOY_DONE_FILE_DELAY=1ms",
		"CA_CERT=" + string(ca.Certificate()), "CLIENT_CERT=" + string(worker.Certificate), "CLIENT_KEY=" + string(worker.Key),
		sonobuoy.ResultsVariable + "=" + results, sonobuoy.PortVariable + "=" + port,
	}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	g.Expect(command.Start()).To(Succeed())
	return received, port, func() error {
		defer func() { t.Log(out.String()) }()
		return command.Wait()
	}
}

func TestSonobuoy(t *testing.T) {
	clustertest.Long(t)
	binary := sonobuoyIn(t)
	conformant := shared.in(t).admin(t, "plugin")
	for _, test := range []struct {
		name, kubeconfig string
		code, done       int
		report           string
	}{
		{"of a cluster that is conformant", conformant, 0, 2, `failures="0"`},
		{"of a cluster that cannot be reached", write(t, kubeconfig(deadServer(t))), 3, 0, `errors="`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			results := t.TempDir()
			received, port, wait := startWorker(t, binary, results)

			ran := start(t, append(emptyEnvironment(t), sonobuoy.ResultsVariable+"="+results, sonobuoy.PortVariable+"="+port), "--kubeconfig", test.kubeconfig,
				"--sonobuoy", "--label-filter", "finalizers.held || finalizers.any-order").wait()

			g.Expect(ran.code).To(Equal(test.code))
			g.Expect(wait()).To(Succeed())
			if test.done > 0 {
				g.Expect(received.progress).To(And(HaveKeyWithValue("completed", BeEquivalentTo(test.done)), HaveKeyWithValue("total", BeEquivalentTo(test.done))))
			}
			unzipped, err := gzip.NewReader(bytes.NewReader(received.results))
			g.Expect(err).NotTo(HaveOccurred())
			content, err := io.ReadAll(unzipped)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content)).To(And(ContainSubstring("junit.xml"), ContainSubstring("report.html"), ContainSubstring(test.report)))
		})
	}
}
