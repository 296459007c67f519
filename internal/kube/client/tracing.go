package client

import (
	"crypto/rand"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced returns a copy of a request with a traceparent header, and the id of the span that the header names. An API server with tracing
// relates its spans to it. Where the recorder has no trace, it returns the request as it is.
func (r *Recorder) traced(sent *http.Request) (*http.Request, string) {
	if !r.Trace.IsValid() {
		return sent, ""
	}
	var span trace.SpanID
	_, _ = rand.Read(span[:]) // never fails
	ctx := trace.ContextWithSpanContext(sent.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: r.Trace, SpanID: span, TraceFlags: trace.FlagsSampled,
	}))
	sent = sent.Clone(sent.Context())
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
	return sent, span.String()
}
