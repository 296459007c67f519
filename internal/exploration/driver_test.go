package exploration

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNameAt(t *testing.T) {
	g := NewWithT(t)
	for _, scenario := range Scenarios {
		names := map[string]bool{}
		for i := range scenario.Objects() {
			name := nameAt(1, i)
			g.Expect(validation.IsDNS1123Label(name)).To(BeEmpty(), name)
			names[name] = true
		}
		g.Expect(names).To(HaveLen(scenario.Objects()), string(scenario))
	}
}
