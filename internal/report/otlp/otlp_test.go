package otlp_test

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/trace"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/otlp"
	"github.com/deletion-conformance/deletion-conformance/internal/report/otlp/otlptest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

// send sends a report to an endpoint.
func send(t *testing.T, url string, r v1alpha1.Report, parent trace.SpanContext) error {
	t.Helper()
	endpoint, err := otlp.ParseEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint.Send(t.Context(), r, parent)
}

// named returns the spans with a name.
func named(spans []otlptest.Span, name string) []otlptest.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(span otlptest.Span) bool { return span.Name != name })
}

func TestSend(t *testing.T) {
	g, receiver := NewWithT(t), otlptest.NewReceiver(t)
	result := reporttest.Ran("cascade.foreground.circle", "A circle must be deleted.", v1alpha1.Passed)
	result.Timeline.Requests = []v1alpha1.Request{{
		At: reporttest.Start.Add(time.Second), Verb: "DELETE", Path: "/api/v1/namespaces/n/configmaps/owner?dryRun=All", Status: 409, Latency: 20 * time.Millisecond,
		Object: &v1alpha1.ObjectReference{Resource: "configmaps", Namespace: "n", Name: "owner"}, SpanID: "00f067aa0ba902b7", Refusal: "a conflict",
	}, {At: reporttest.Start.Add(time.Second), Verb: "GET", Path: "/version", Error: "connection refused"}}
	r := reporttest.Run("dcabc", 0, reporttest.OnCluster("kind-a", result, reporttest.Unstarted("x.b", "b", v1alpha1.Skipped)))
	r.TraceID = traceID

	g.Expect(send(t, receiver.URL, r, trace.SpanContext{})).To(Succeed())

	spans := receiver.Spans()
	g.Expect(spans).To(HaveLen(4), "what did not start has no span")
	g.Expect(spans).To(HaveEach(And(HaveField("TraceID", traceID), HaveField("Service", "deletion-conformance"))))
	run, behavior := named(spans, "run")[0], named(spans, "cascade.foreground.circle")[0]
	refused, lost := named(spans, "DELETE configmaps")[0], named(spans, "GET")[0]
	g.Expect(run.Attributes).To(Equal(map[string]any{"run.id": "dcabc", "run.conclusion": "conformant"}))
	g.Expect([]time.Time{run.Start, run.End}).To(Equal([]time.Time{r.Start, r.End}))
	g.Expect([]string{run.Parent, behavior.Parent, refused.Parent}).To(Equal([]string{"", run.ID, behavior.ID}))
	g.Expect(behavior.Attributes).To(Equal(map[string]any{
		"test.case.name": "cascade.foreground.circle", "test.suite.name": "cascade", "test.case.result.status": "pass",
		"behavior.statement": "A circle must be deleted.", "behavior.level": "core", "behavior.outcome": "passed",
		"k8s.cluster.name": "kind-a", "k8s.cluster.version": "v1.36.3",
	}))
	g.Expect(behavior.End.Sub(behavior.Start)).To(Equal(1500 * time.Millisecond))
	g.Expect(refused.ID).To(Equal("00f067aa0ba902b7"), "as in the traceparent header")
	g.Expect(refused.Client && !refused.Failed).To(BeTrue(), "a refusal is what the behavior asked for")
	g.Expect(refused.End.Sub(refused.Start)).To(Equal(20 * time.Millisecond))
	g.Expect(refused.Attributes).To(Equal(map[string]any{
		"http.request.method": "DELETE", "url.path": "/api/v1/namespaces/n/configmaps/owner", "url.query": "dryRun=All",
		"http.response.status_code": int64(409), "k8s.namespace.name": "n", "k8s.object.name": "owner",
	}))
	g.Expect(lost).To(And(HaveField("Failed", true), HaveField("Message", "connection refused")))
}

func TestSend_Failures(t *testing.T) {
	for _, c := range []struct {
		outcome v1alpha1.Outcome
		strict  bool
		failed  bool
		status  string
	}{
		{v1alpha1.Passed, false, false, "pass"},
		{v1alpha1.Failed, false, true, "fail"},
		{v1alpha1.Outdated, false, true, "fail"},
		{v1alpha1.Known, false, false, ""},
		{v1alpha1.Deviated, false, false, ""},
		{v1alpha1.Deviated, true, true, "fail"},
		{v1alpha1.Errored, false, true, ""},
		{v1alpha1.Interrupted, false, true, ""},
		{v1alpha1.Skipped, false, false, ""},
	} {
		g, receiver := NewWithT(t), otlptest.NewReceiver(t)
		r := reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Failing(reporttest.Ran("x.a", "a", c.outcome))))
		r.Strict = c.strict
		g.Expect(send(t, receiver.URL, r, trace.SpanContext{})).To(Succeed())
		span := named(receiver.Spans(), "x.a")[0]
		g.Expect(span.Failed).To(Equal(c.failed), string(c.outcome))
		status, _ := span.Attributes["test.case.result.status"].(string)
		g.Expect(status).To(Equal(c.status), string(c.outcome))
	}
}

func TestSend_ParentSpan(t *testing.T) {
	g, receiver := NewWithT(t), otlptest.NewReceiver(t)
	id, err := trace.TraceIDFromHex(traceID)
	g.Expect(err).NotTo(HaveOccurred())
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{7: 7}, TraceFlags: trace.FlagsSampled})
	g.Expect(send(t, receiver.URL, reporttest.Sample(), caller)).To(Succeed())
	g.Expect(receiver.Spans()).To(HaveEach(HaveField("TraceID", traceID)))
	g.Expect(named(receiver.Spans(), "run")[0].Parent).To(Equal("0000000000000007"))
}

func TestSend_HostileText(t *testing.T) {
	for _, text := range reporttest.Hostile {
		g, receiver := NewWithT(t), otlptest.NewReceiver(t)
		r := reporttest.WithText(text)
		r.TraceID = text
		r.Clusters[0].Results[0].Timeline.Requests[0].SpanID = text
		g.Expect(send(t, receiver.URL, r, trace.SpanContext{})).To(Succeed())
		g.Expect(receiver.Spans()).To(HaveEach(HaveField("TraceID", Not(BeEmpty()))))
	}
}

func TestSend_LostSpans(t *testing.T) {
	many := reporttest.Fleet(400, 1)
	for _, c := range []struct {
		name   string
		change func(*otlptest.Receiver)
		cause  string
		// received is whether some batches arrived before.
		received bool
	}{
		{"not found", func(r *otlptest.Receiver) { r.Refuse = func(int) int { return http.StatusNotFound } }, "404 Not Found", false},
		{"a later one", func(r *otlptest.Receiver) {
			r.Refuse = func(batch int) int {
				if batch > 1 {
					return http.StatusBadRequest
				}
				return 0
			}
		}, "400 Bad Request", true},
		{"rejected", func(r *otlptest.Receiver) { r.Rejects = 3 }, "rejected by the test", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, receiver := NewWithT(t), otlptest.NewReceiver(t)
			c.change(receiver)
			err := send(t, receiver.URL, many, trace.SpanContext{})
			var lost *otlp.Lost
			g.Expect(errors.As(err, &lost)).To(BeTrue())
			g.Expect(lost.All).To(BeNumerically(">", 1000))
			g.Expect(lost.Spans).To(BeNumerically(">", 0))
			g.Expect(lost.Spans < lost.All || !c.received || receiver.Rejects > 0).To(BeTrue())
			g.Expect(err.Error()).To(And(MatchRegexp(`^\d+ of \d+ spans were lost: `), ContainSubstring(c.cause), Not(ContainSubstring("\n"))))
		})
	}
}

func TestSend_BusyCollector(t *testing.T) {
	g, receiver := NewWithT(t), otlptest.NewReceiver(t)
	receiver.Refuse = func(batch int) int {
		if batch == 1 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	g.Expect(send(t, receiver.URL, reporttest.Sample(), trace.SpanContext{})).To(Succeed())
	g.Expect(receiver.Spans()).NotTo(BeEmpty())
}

func TestSend_SilentCollector(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // which nothing accepts from
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + silent.Addr().String()
	start := time.Now()
	g := NewWithT(t)
	g.Expect(send(t, gone, reporttest.Fleet(400, 1), trace.SpanContext{})).To(MatchError(ContainSubstring("spans were lost")))
	g.Expect(time.Since(start)).To(BeNumerically("<", 15*time.Second))
	g.Expect(silent.Close()).To(Succeed())
	start = time.Now()
	g.Expect(send(t, gone, reporttest.Fleet(400, 1), trace.SpanContext{})).To(MatchError(ContainSubstring("connection refused")))
	g.Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second))
}

func TestSend_Headers(t *testing.T) {
	g, receiver := NewWithT(t), otlptest.NewReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	g.Expect(send(t, receiver.URL+"/", reporttest.Sample(), trace.SpanContext{})).To(Succeed())
	g.Expect(receiver.Headers()).To(HaveEach(HaveKeyWithValue("Api-Key", []string{"secret"})))
}

func TestParseEndpoint(t *testing.T) {
	for _, good := range []string{"http://localhost:4318", "https://otel.example", "https://otel.example/otlp/", "http://[::1]:4318"} {
		_, err := otlp.ParseEndpoint(good)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), good)
	}
	for invalid, reason := range map[string]string{
		"":                                "is not the URL of a collector",
		"localhost:4318":                  "is not the URL of a collector",
		"collector":                       "is not the URL of a collector",
		"grpc://localhost:4317":           "is not the URL of a collector",
		"http://":                         "is not the URL of a collector",
		"http://a b":                      "is not the URL of a collector",
		"http://me:hunter2@localhost":     "OTEL_EXPORTER_OTLP_HEADERS",
		"ftp://me:hunter2@localhost":      "is not the URL of a collector",
		"http://localhost:4318?token=abc": "must not contain a query",
		"http://localhost:4318/#traces":   "must not contain a query",
		"http://localhost:port":           "is not the URL of a collector",
	} {
		_, err := otlp.ParseEndpoint(invalid)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(reason), Not(ContainSubstring("hunter2")))), invalid)
	}
}
