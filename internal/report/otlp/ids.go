package otlp

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"
)

// idGenerator generates the ids of spans: those that are known, and random ones.
type idGenerator struct{ trace trace.TraceID }

// spanID is the context key of the id of the next span.
type spanID struct{}

// withSpanID returns a context in which a span starts with an id in hexadecimal digits. An invalid one is ignored.
func withSpanID(ctx context.Context, id string) context.Context {
	span, err := trace.SpanIDFromHex(id)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, spanID{}, span)
}

// NewIDs returns the ids of the first span.
func (k idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id := k.trace
	if !id.IsValid() {
		id = NewTraceID()
	}
	return id, k.NewSpanID(ctx, id)
}

// NewSpanID returns the id of another span.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if span, ok := ctx.Value(spanID{}).(trace.SpanID); ok {
		return span
	}
	var span trace.SpanID
	_, _ = rand.Read(span[:]) // never fails
	return span
}

// NewTraceID returns a random trace id.
func NewTraceID() trace.TraceID {
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id
}
