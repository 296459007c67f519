package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/otlp"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

const otlpEndpointFlag = "otlp-endpoint"

// traceFlags are the flags for sending a run to an OpenTelemetry collector.
type traceFlags struct{ endpoint string }

func (f *traceFlags) addTo(set *pflag.FlagSet) {
	set.StringVar(&f.endpoint, otlpEndpointFlag, "", "`URL` of an OpenTelemetry collector that receives OTLP over HTTP, as http://localhost:4318: it gets a span for the run, each behavior and each request, and requests carry a traceparent header; the environment variables OTEL_EXPORTER_OTLP_HEADERS and TRACEPARENT are used")
}

// fill starts a trace, or continues that of the runner's caller, if there is a collector. An invalid TRACEPARENT is ignored, as the W3C
// specification requires.
func (f *traceFlags) fill(o *run.Options) error {
	if f.endpoint == "" {
		return nil
	}
	collector, err := otlp.ParseEndpoint(f.endpoint)
	if err != nil {
		return fmt.Errorf("--%s: %w", otlpEndpointFlag, err)
	}
	id := otlp.NewTraceID()
	carrier := propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT")}
	caller := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if caller.IsValid() {
		id = caller.TraceID()
	}
	o.Settings.TraceID = id.String()
	o.SendTrace = func(ctx context.Context, whole v1alpha1.Report) error { return collector.Send(ctx, whole, caller) }
	return nil
}
