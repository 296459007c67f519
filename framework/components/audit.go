package components

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// AuditEvent is an event of the API server's audit log, as far as behaviors look at it.
type AuditEvent struct {
	Verb        string            `json:"verb"`
	Annotations map[string]string `json:"annotations"`
}

// AuditEvents returns the events of the API server's audit log about an object. The API server writes them after the response. The spec is
// skipped when the log cannot be read.
func AuditEvents(ctx context.Context, cluster *framework.Cluster, object *framework.Object) []AuditEvent {
	ginkgo.GinkgoHelper()
	lines, err := component.AuditEvents(ctx, cluster.Session().Components, object.GetNamespace(), object.GetName())
	if errors.Is(err, component.ErrUnsupported) {
		ginkgo.Skip(fmt.Sprintf("reading the audit log is %v", component.ErrUnsupported))
	}
	var events []AuditEvent
	for line := range bytes.Lines(lines) {
		event := AuditEvent{}
		if json.Unmarshal(line, &event) == nil { // the last line may be incomplete
			events = append(events, event)
		}
	}
	if err != nil {
		cluster.Check(ctx, framework.Response{Request: "read the audit log", Err: err})
	}
	return events
}
