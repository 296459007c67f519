package specs_test

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

var _ = ginkgo.Describe("outer", func() {
	ginkgo.Context("inner", func() {
		ginkgo.It("is built", func() {})
	})
})

func TestBuildOnly(t *testing.T) {
	g := NewWithT(t)
	all := ginkgo.PreviewSpecs("samples").SpecReports
	g.Expect(all).To(HaveLen(1))
	files := specs.FilesOf(all[0])
	g.Expect(files).To(HaveExactElements(HaveSuffix("containers_test.go")), "each file once")

	specs.BuildOnly([]string{"other.go"})
	g.Expect(ginkgo.PreviewSpecs("samples").SpecReports).To(BeEmpty())
	specs.BuildOnly(files)
	g.Expect(ginkgo.PreviewSpecs("samples").SpecReports).To(HaveLen(1))
}
