package otlp

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// record starts and ends the spans of a report. Attributes that OpenTelemetry's semantic conventions know have their names: test.*, http.*,
// url.*, error.type and k8s.*.
func record(ctx context.Context, tracer trace.Tracer, r v1alpha1.Report) {
	verdict, _ := r.Verdict(v1alpha1.SubjectCluster)
	ctx, run := tracer.Start(ctx, "run", trace.WithTimestamp(r.Start), attributes(
		attribute.String("run.id", r.RunID), attribute.String("run.conclusion", string(verdict.Conclusion)), attribute.String("run.shard", r.Shard),
	))
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if !result.Start.IsZero() {
				recordBehavior(ctx, tracer, cluster, result, r.Strict)
			}
		}
	}
	if !verdict.Conclusion.Passes() {
		run.SetStatus(codes.Error, verdict.Reason)
	}
	run.End(trace.WithTimestamp(r.End))
}

// recordBehavior starts and ends the spans of a behavior and its requests.
func recordBehavior(ctx context.Context, tracer trace.Tracer, cluster v1alpha1.Cluster, result v1alpha1.Result, strict bool) {
	status := report.StatusOf(result, strict)
	ctx, behavior := tracer.Start(ctx, result.ID, trace.WithTimestamp(result.Start), attributes(
		attribute.String("test.case.name", result.ID), attribute.String("test.suite.name", result.Suite()), attribute.String("test.case.result.status", testStatuses[status]),
		attribute.String("behavior.statement", result.Statement), attribute.String("behavior.level", string(result.Level)), attribute.String("behavior.outcome", string(result.Outcome)), attribute.String("behavior.reason", result.Reason),
		attribute.String("k8s.cluster.name", cluster.Name), attribute.String("k8s.cluster.version", cluster.ServerVersion), attribute.String("behavior.resource", cluster.Resource),
	))
	for _, request := range result.Timeline.Requests {
		recordRequest(ctx, tracer, request)
	}
	if status == report.Fail || status == report.Error {
		behavior.SetStatus(codes.Error, report.Message(result))
	}
	behavior.End(trace.WithTimestamp(result.Start.Add(seconds(result.Seconds))))
}

// testStatuses are the values of test.case.result.status. A behavior without a result has none.
var testStatuses = map[report.Status]string{report.Pass: "pass", report.Fail: "fail"}

// recordRequest starts and ends the span of a request. A refusal is no error, because behaviors ask for it; no response and an error of the
// server are.
func recordRequest(ctx context.Context, tracer trace.Tracer, request v1alpha1.Request) {
	path, query, _ := strings.Cut(request.Path, "?")
	described := []attribute.KeyValue{
		attribute.String("http.request.method", request.Verb), attribute.String("url.path", path), attribute.String("url.query", query),
	}
	name := request.Verb
	if object := request.Object; object != nil {
		name += " " + strings.TrimSuffix(object.Resource+"/"+request.Subresource, "/")
		described = append(described, attribute.String("k8s.namespace.name", object.Namespace), attribute.String("k8s.object.name", object.Name), attribute.String("k8s.object.uid", string(object.UID)))
	}
	failed := ""
	switch {
	case request.Status == 0:
		failed = request.Error
		described = append(described, attribute.String("error.type", "no response"))
	case request.Status >= statusServerError:
		failed = request.Refusal
		described = append(described, attribute.String("error.type", strconv.Itoa(request.Status)))
	}
	_, span := tracer.Start(withSpanID(ctx, request.SpanID), name, trace.WithTimestamp(request.At), trace.WithSpanKind(trace.SpanKindClient), attributes(described...))
	if request.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", request.Status))
	}
	if request.Status == 0 || request.Status >= statusServerError {
		span.SetStatus(codes.Error, failed)
	}
	span.End(trace.WithTimestamp(request.At.Add(request.Latency)))
}

// statusServerError is the first HTTP status of an error of the server.
const statusServerError = 500

// attributes returns text attributes with a value.
func attributes(described ...attribute.KeyValue) trace.SpanStartEventOption {
	var present []attribute.KeyValue
	for _, one := range described {
		if one.Value.AsString() != "" {
			present = append(present, one)
		}
	}
	return trace.WithAttributes(present...)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
