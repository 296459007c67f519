package describe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// FuzzTimeline describes arbitrary events: each object must get exactly one line.
func FuzzTimeline(f *testing.F) {
	f.Fuzz(func(t *testing.T, content []byte) {
		var seen []struct {
			Type   watch.EventType
			Object map[string]any
		}
		if json.Unmarshal(content, &seen) != nil {
			t.Skip("no events")
		}
		var events []journal.Event
		for _, one := range seen {
			object := &unstructured.Unstructured{Object: one.Object}
			events = append(events, journal.Event{Type: one.Type, Object: object})
			_, _, _ = describe.Pod(object), describe.Containers(object), describe.ContainerStates(object)
			_, _, _ = describe.Endpoints(object), describe.Conditions(object), describe.Object(object)
		}
		for _, line := range describe.Explain(events, events) {
			if !strings.Contains(line, " still exists: ") {
				t.Errorf("it explains nothing: %q", line)
			}
		}
	})
}
