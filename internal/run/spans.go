package run

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/internal/report/otlp"
)

// parseEndpoint parses the URL of the collector, if there is one, and starts a trace: that of the run's caller, or a new one.
func (o *Options) parseEndpoint() (err error) {
	if o.OTLPEndpoint == "" {
		return nil
	}
	if o.collector, err = otlp.ParseEndpoint(o.OTLPEndpoint); err != nil {
		return fmt.Errorf("%s: %w", o.Name("otlp-endpoint"), err)
	}
	id := otlp.NewTraceID()
	carrier := propagation.MapCarrier{"traceparent": o.TraceParent}
	if o.parent = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier)); o.parent.IsValid() {
		id = o.parent.TraceID()
	}
	o.Settings.TraceID = id.String()
	return nil
}

// sendSpans sends the spans of a run to the collector while the run cleans up. The returned function waits for that, and warns of lost spans.
// They never fail a run.
func (c *conductor) sendSpans(ctx context.Context, whole v1alpha1.Report) (await func()) {
	if c.OTLPEndpoint == "" {
		return func() {}
	}
	whole, err := c.redactor.Report(whole)
	if err != nil {
		return func() { c.crashed(err) }
	}
	sent := make(chan error, 1)
	go func() {
		sent <- crash.Caught("send spans", func() error { return c.collector.Send(context.WithoutCancel(ctx), whole, c.parent) })
	}()
	return func() {
		if err := <-sent; err != nil {
			_, _ = fmt.Fprintf(c.Out, "warning: %s\n", c.redactor.Text(err.Error()))
		}
	}
}
