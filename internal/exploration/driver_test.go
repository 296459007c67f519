package exploration

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNameAt(t *testing.T) {
	g, names := NewWithT(t), map[string]bool{}
	for i := range 100 {
		name := nameAt(1, i)
		g.Expect(validation.IsDNS1123Label(name)).To(BeEmpty(), name)
		names[name] = true
	}
	g.Expect(names).To(HaveLen(100))
}
