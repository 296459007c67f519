package specs_test

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

var _ = ginkgo.Describe("outer", func() {
	ginkgo.Context("inner", func() {
		ginkgo.It("is built", func() {})
	})
	ginkgo.DescribeTable("table", func(int) {}, ginkgo.Entry("is built, too", 1))
})

var _ = ginkgo.Describe("located", types.CodeLocation{FileName: "generated.go"}, func() {
	ginkgo.It("is built for another file", func() {})
})

func TestBuildOnly(t *testing.T) {
	g := NewWithT(t)
	all := ginkgo.PreviewSpecs("samples").SpecReports
	g.Expect(all).To(HaveLen(3))
	for _, spec := range all {
		files := specs.FilesOf(spec)
		g.Expect(files).To(HaveLen(1), "each file once")
		specs.BuildOnly(files)
		g.Expect(ginkgo.PreviewSpecs("samples").SpecReports).To(And(
			ContainElement(HaveField("LeafNodeText", spec.LeafNodeText)), HaveEach(WithTransform(specs.FilesOf, Equal(files)))))
	}
	specs.BuildOnly([]string{"other.go"})
	g.Expect(ginkgo.PreviewSpecs("samples").SpecReports).To(BeEmpty())
	specs.BuildOnly(nil)
	g.Expect(ginkgo.PreviewSpecs("samples").SpecReports).To(HaveLen(len(all)))
}
