// Package otlp sends a report to an OpenTelemetry collector: a trace with one span for the run, one for each behavior, and one for each
// request of a behavior to the API server.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

const (
	// responseTime limits how long a collector may take to accept a batch, including retries.
	responseTime = 5 * time.Second
	// tracesPath is where collectors receive traces, below their base URL.
	tracesPath = "v1/traces"
	// serviceName is the name of the service that the spans are of.
	serviceName = "deletion-conformance"
)

// Endpoint is the base URL of a collector that receives OTLP over HTTP, as in OTEL_EXPORTER_OTLP_ENDPOINT.
type Endpoint struct{ url *url.URL }

// ParseEndpoint parses the base URL of a collector. It fails when the URL is not one, or contains what is not sent: credentials, a query or a
// fragment.
func ParseEndpoint(base string) (Endpoint, error) {
	parsed, err := url.Parse(base)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		return Endpoint{}, fmt.Errorf("%q is not the URL of a collector: write it as http://localhost:4318 (OTLP over HTTP)", redacted(parsed, base))
	case parsed.User != nil:
		return Endpoint{}, fmt.Errorf("%q must not contain credentials: set them as headers in OTEL_EXPORTER_OTLP_HEADERS", parsed.Redacted())
	case parsed.RawQuery != "" || parsed.Fragment != "":
		return Endpoint{}, fmt.Errorf("%q must not contain a query or a fragment", base)
	}
	return Endpoint{parsed.JoinPath(tracesPath)}, nil
}

// redacted returns a URL without its password, or the text where it is none.
func redacted(parsed *url.URL, text string) string {
	if parsed == nil {
		return text
	}
	return parsed.Redacted()
}

// Lost is the error when a collector did not accept all spans.
type Lost struct {
	// Spans is the number of spans that were lost, of All.
	Spans, All int
	// Cause is why; it may contain the text of a response.
	Cause error
}

func (l *Lost) Error() string {
	return fmt.Sprintf("%d of %d spans were lost: send them to the OpenTelemetry collector: %s", l.Spans, l.All, strings.Join(strings.Fields(l.Cause.Error()), " "))
}

func (l *Lost) Unwrap() error { return l.Cause }

// Send sends the spans of a report. The trace id is that of the report, and requests have the span ids of the report, so that spans of an API
// server with tracing are below them; without these ids, random ones are used. The parent is the span of the run's caller; the zero value for
// none. A collector that does not accept a batch within 5 seconds gets no further ones. The error is a *Lost.
func (e Endpoint) Send(ctx context.Context, r v1alpha1.Report, parent trace.SpanContext) error {
	r = visible.Value(r)
	exporter, err := otlptrace.New(ctx, otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(e.url.String()),
		otlptracehttp.WithTimeout(responseTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: responseTime / 10, MaxInterval: responseTime, MaxElapsedTime: responseTime}),
	))
	sending := &batches{ctx: ctx, exporter: exporter, failed: err}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(sending), sdktrace.WithIDGenerator(idGenerator{traceID(r)}), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", serviceName), attribute.String("service.version", r.Runner))),
	)
	record(trace.ContextWithRemoteSpanContext(ctx, parent), provider.Tracer(serviceName), r)
	failed := provider.Shutdown(ctx)
	if exporter != nil {
		failed = errors.Join(failed, exporter.Shutdown(ctx))
	}
	if sending.lost > 0 {
		return &Lost{Spans: sending.lost, All: sending.all, Cause: errors.Join(sending.failed, failed)}
	}
	return nil
}

// traceID returns the trace id of a report; invalid when it has none.
func traceID(r v1alpha1.Report) trace.TraceID {
	id, _ := trace.TraceIDFromHex(r.TraceID)
	return id
}
