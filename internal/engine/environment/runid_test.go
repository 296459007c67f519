package environment

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestRunIDOf(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RunIDOf("job/1")).To(Equal(RunIDOf("job/1")))
	g.Expect(RunIDOf("job/1")).NotTo(Equal(RunIDOf("job/2")))
	for _, run := range []string{RunIDOf("job/1"), NewRunID()} {
		g.Expect(client.NamedBy(run, run+"-1")).To(BeTrue(), "the run %q owns its namespace", run)
	}
}
