// Package otlptest receives spans in tests: an OTLP receiver over HTTP in the process of the test.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that was received. Ids are in hexadecimal digits.
type Span struct {
	TraceID, ID, Parent, Name string
	// Service is the service.name of its resource.
	Service string
	// Linked are the ids of the spans to which it has links.
	Linked     []string
	Start, End time.Time
	// Client is set for spans of requests that were sent.
	Client bool
	// Failed is set for the status Error, with its Message.
	Failed  bool
	Message string
	// Attributes are those with a text or a number.
	Attributes map[string]any
}

// Receiver receives spans.
type Receiver struct {
	// URL is the base URL.
	URL string
	// Refuse is called before each batch, with its number from 1. The batch is refused with the status that it returns, unless that is 0.
	Refuse func(batch int) (status int)
	// Rejects is the number of spans of each batch that the response reports as rejected.
	Rejects int64

	mu      sync.Mutex
	batches int
	headers []http.Header
	spans   []Span
}

// NewReceiver starts a receiver that ends with the test.
func NewReceiver(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.receive)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Spans returns the received spans.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Headers returns the headers of the received batches.
func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]http.Header(nil), r.headers...)
}

func (r *Receiver) receive(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches++
	r.headers = append(r.headers, request.Header)
	if r.Refuse != nil {
		if status := r.Refuse(r.batches); status != 0 {
			http.Error(w, "refused by the test", status)
			return
		}
	}
	sent, err := decode(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.spans = append(r.spans, spansOf(sent)...)
	response := &coltracepb.ExportTraceServiceResponse{}
	if r.Rejects > 0 {
		response.PartialSuccess = &coltracepb.ExportTracePartialSuccess{RejectedSpans: r.Rejects, ErrorMessage: "rejected by the test"}
	}
	content, _ := proto.Marshal(response)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(content)
}

func decode(request *http.Request) (*coltracepb.ExportTraceServiceRequest, error) {
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(request.Body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	sent := &coltracepb.ExportTraceServiceRequest{}
	return sent, proto.Unmarshal(content, sent)
}

func spansOf(sent *coltracepb.ExportTraceServiceRequest) (spans []Span) {
	for _, resource := range sent.GetResourceSpans() {
		service, _ := attributesOf(resource.GetResource().GetAttributes())["service.name"].(string)
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				spans = append(spans, spanOf(service, span))
			}
		}
	}
	return spans
}

func spanOf(service string, span *tracepb.Span) Span {
	received := Span{
		TraceID: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
		Name: span.GetName(), Service: service, Start: at(span.GetStartTimeUnixNano()), End: at(span.GetEndTimeUnixNano()),
		Client: span.GetKind() == tracepb.Span_SPAN_KIND_CLIENT, Failed: span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		Message: span.GetStatus().GetMessage(), Attributes: attributesOf(span.GetAttributes()),
	}
	for _, link := range span.GetLinks() {
		received.Linked = append(received.Linked, hex.EncodeToString(link.GetSpanId()))
	}
	return received
}

// at converts nanoseconds since 1970.
func at(nanoseconds uint64) time.Time {
	return time.Unix(0, int64(nanoseconds)).UTC() //nolint:gosec // until the year 2262
}

func attributesOf(pairs []*commonpb.KeyValue) map[string]any {
	attributes := map[string]any{}
	for _, pair := range pairs {
		switch value := pair.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			attributes[pair.GetKey()] = value.StringValue
		case *commonpb.AnyValue_IntValue:
			attributes[pair.GetKey()] = value.IntValue
		}
	}
	return attributes
}
