package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report/otlp/otlptest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// ofService returns the spans of a service, by id.
func ofService(spans []otlptest.Span, service string) map[string]otlptest.Span {
	found := map[string]otlptest.Span{}
	for _, span := range spans {
		if span.Service == service {
			found[span.ID] = span
		}
	}
	return found
}

func TestTrace(t *testing.T) {
	t.Parallel()
	g, receiver := NewWithT(t), otlptest.NewReceiver(t)
	caller := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

	ran := startRunIn(t, append(emptyEnvironment(t), "TRACEPARENT="+caller),
		"--kubeconfig", shared.in(t).admin(t, "traced"), "--label-filter", "finalizers.held || finalizers.dry-run", "--otlp-endpoint", receiver.URL).wait()

	g.Expect(ran.code).To(Equal(0))
	g.Expect(ran.out).NotTo(ContainSubstring("spans were lost"))
	whole := ran.report(t)
	g.Expect(whole.TraceID).To(Equal("4bf92f3577b34da6a3ce929d0e0e4736"))
	spans := ofService(receiver.Spans(), "deletion-conformance")
	requests := 0
	for _, result := range whole.Clusters[0].Results {
		for _, request := range result.Timeline.Requests {
			requests++
			g.Expect(spans).To(HaveKey(request.SpanID))
			g.Expect(spans[spans[request.SpanID].Parent].Name).To(Equal(result.ID))
		}
	}
	g.Expect(requests).To(BeNumerically(">", 3))
	g.Expect(len(spans)).To(Equal(1+2+requests), "a span for the run, each behavior and each request")
	g.Expect(spans).To(ContainElement(And(HaveField("Name", "run"), HaveField("Parent", "00f067aa0ba902b7"))))
}

func TestTrace_CollectorDown(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	collector := "http" + strings.TrimPrefix(deadServer(t), "https")
	ran := startRun(t, "--kubeconfig", shared.in(t).admin(t, "untraced"), "--label-filter", "finalizers.held", "--otlp-endpoint", collector).wait()
	g.Expect(ran.code).To(Equal(0))
	g.Expect(strings.Count(ran.out, "spans were lost")).To(Equal(1))
	g.Expect(ran.out).To(MatchRegexp(`\nwarning: (\d+) of (\d+) spans were lost: .*connection refused\n`))
}

func TestTrace_APIServerSpans(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g, receiver := NewWithT(t), otlptest.NewReceiver(t)
	overHTTP, overGRPC := collector(t, receiver)
	traced := filepath.Join(t.TempDir(), "tracing.yaml")
	g.Expect(os.WriteFile(traced, fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 0\n", overGRPC), 0o600)).To(Succeed())
	if built.missing != nil {
		t.Skip(built.missing)
	}
	local := embedded.New(built.kubernetes, embedded.WithAPIServerFlags("--tracing-config-file="+traced))
	g.Expect(local.Create(t.Context())).To(Succeed())
	t.Cleanup(func() { g.Expect(local.Destroy()).To(Succeed()) })

	ran := startRun(t, "--kubeconfig", local.Kubeconfig(), "--suite", "finalizers", "--label-filter", "features: isEmpty", "--otlp-endpoint", "http://"+overHTTP).wait()

	g.Expect(ran.code).To(Equal(0))
	whole := ran.report(t)
	var requests, gone []string
	behaviors := 0
	for _, result := range whole.Clusters[0].Results {
		if !result.Start.IsZero() {
			behaviors++
		}
		for _, request := range result.Timeline.Requests {
			requests = append(requests, request.SpanID)
			if request.Status == 0 {
				gone = append(gone, request.SpanID)
			}
		}
	}
	g.Expect(len(requests)).To(BeNumerically(">", 100))
	g.Expect(len(gone)).To(BeNumerically("<", 10))
	g.Eventually(func(g Gomega) { // the API server and the collector send in batches
		spans := receiver.Spans()
		g.Expect(len(ofService(spans, "deletion-conformance"))).To(Equal(1+behaviors+len(requests)), "a span for the run, each behavior and each request")
		related := map[string]bool{}
		for _, span := range ofService(spans, "apiserver") {
			related[span.Parent] = true
			for _, linked := range span.Linked { // before 1.33, whatever the user
				related[linked] = true
			}
		}
		unrelated := slices.DeleteFunc(slices.Clone(requests), func(id string) bool { return related[id] || slices.Contains(gone, id) })
		g.Expect(len(unrelated)).To(BeZero(), "requests without a span of the API server")
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
}

// collector starts an OpenTelemetry Collector that sends what it receives on to the receiver, and returns where it listens for OTLP.
func collector(t *testing.T, receiver *otlptest.Receiver) (overHTTP, overGRPC string) {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join("..", "..", "bin", "otel-collector"))
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		t.Skipf("it was not built (%v): make bin/otel-collector does it", err)
	}
	overHTTP, overGRPC = strings.TrimPrefix(deadServer(t), "https://"), strings.TrimPrefix(deadServer(t), "https://")
	file := filepath.Join(t.TempDir(), "collector.yaml")
	content := fmt.Sprintf(`receivers: {otlp: {protocols: {http: {endpoint: %q}, grpc: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`, overHTTP, overGRPC, receiver.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &output{}
	process := exec.CommandContext(t.Context(), binary, "--config", "file:"+file)
	process.Stdout, process.Stderr = said, said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the context of the test has ended, which kills it
		_ = process.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	NewWithT(t).Eventually(func() error {
		connection, err := net.Dial("tcp", overHTTP)
		if err == nil {
			_ = connection.Close()
		}
		return err
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed())
	return overHTTP, overGRPC
}
