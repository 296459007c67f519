package otlp

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// batchSize is the number of spans in a request to the collector, the default of OpenTelemetry's own batches.
const batchSize = 512

// batches sends ended spans in batches, one after the other, until one fails. OpenTelemetry's batch processor does not count lost spans.
type batches struct {
	ctx      context.Context
	exporter sdktrace.SpanExporter
	batch    []sdktrace.ReadOnlySpan
	// all counts the spans, and lost those that were not accepted, because sending a batch has failed.
	all, lost int
	failed    error
}

// OnStart does nothing.
func (*batches) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd adds a span to the batch, and sends a full one.
func (b *batches) OnEnd(span sdktrace.ReadOnlySpan) {
	b.all++
	if b.batch = append(b.batch, span); len(b.batch) == batchSize {
		b.send()
	}
}

// send sends the batch. After a failure it counts the spans as lost.
func (b *batches) send() {
	if b.failed == nil && len(b.batch) > 0 {
		b.failed = b.exporter.ExportSpans(b.ctx, b.batch)
		if b.failed == nil {
			b.batch = b.batch[:0]
			return
		}
	}
	b.lost += len(b.batch)
	b.batch = b.batch[:0]
}

// Shutdown sends the last batch.
func (b *batches) Shutdown(ctx context.Context) error { return b.ForceFlush(ctx) }

// ForceFlush sends the batch.
func (b *batches) ForceFlush(context.Context) error {
	b.send()
	return nil
}
