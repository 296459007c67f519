package framework

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

func TestWithField(t *testing.T) {
	g := NewWithT(t)
	object := fixtures.ConfigMap("object")
	WithField(map[string]any{"phase": "Bound", "used": map[string]any{"count/a.b": "2"}}, "status")(object)
	WithField([]any{map[string]any{"type": "Ready", "reason": "Terminating"}}, "status", "conditions")(object)

	g.Expect(object).To(HaveJSONPath("{.status.phase}", "Bound"))
	g.Expect(object).NotTo(HaveJSONPath("{.status.phase}", "Released"))
	g.Expect(object).To(HaveJSONPath(`{.status.used.count/a\.b}`, "2"))
	g.Expect(object).To(HaveJSONPath(`{.status.conditions[?(@.type=="Ready")].reason}`, "Terminating"))
	g.Expect(object).To(HaveJSONPath("{.spec.nothing}", ""))
	g.Expect(object).NotTo(HaveJSONPath("{.spec.nothing}", "Bound"))
}
