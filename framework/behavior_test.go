package framework

import (
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Specs that are only looked at: what Behavior says must come back from Ginkgo's own report of them.
var _ = ginkgo.Describe("a thing", func() {
	ginkgo.It("goes at once", Behavior("sample.plain", Core), func() {})
	ginkgo.It("goes in the end", Behavior("sample.some.topic.last-name", Observed, Node, GC, Since("1.30")), func() {})
	ginkgo.It("is no behaviour", ginkgo.Label("extended", "needs: gc"), func() {})
})

func TestContractsComeBackFromGinkgosReports(t *testing.T) {
	contracts := map[string]v1alpha1.Behavior{}
	for _, spec := range ginkgo.PreviewSpecs("samples").SpecReports {
		if contract, is := BehaviorOf(spec); is {
			contracts[contract.ID] = contract
		}
	}

	g := NewWithT(t)
	g.Expect(contracts).To(HaveLen(2), "a spec without an id is no behaviour")
	plain, rich := contracts["sample.plain"], contracts["sample.some.topic.last-name"]
	g.Expect(plain.Line).To(BeNumerically(">", 0))
	g.Expect(plain.File).To(HaveSuffix("behavior_test.go"))
	plain.File, plain.Line, rich.File, rich.Line = "", 0, "", 0
	g.Expect(plain).To(Equal(v1alpha1.Behavior{
		ID: "sample.plain", Statement: "goes at once", Level: Core, Needs: []v1alpha1.Need{},
	}))
	g.Expect(rich).To(Equal(v1alpha1.Behavior{
		ID: "sample.some.topic.last-name", Statement: "goes in the end", Level: Observed, Needs: []v1alpha1.Need{v1alpha1.GC, v1alpha1.Node}, Since: "1.30",
	}), "needs come in the order in which they are named everywhere")
	g.Expect(plain.Suite()).To(Equal("sample"))
	g.Expect(plain.Topic()).To(BeEmpty())
	g.Expect(rich.Suite()).To(Equal("sample"))
	g.Expect(rich.Topic()).To(Equal("some.topic"))
}

func TestBehaviorRefusesIDsThatNoFilterCouldName(t *testing.T) {
	for _, id := range []string{"", "cascade", "Cascade.name", "cascade.", ".name", "cascade.two words", "cascade.a:b", "cascade..name"} {
		t.Run(id, func(t *testing.T) {
			NewWithT(t).Expect(func() { Behavior(id, Core) }).To(PanicWith(ContainSubstring("must look like suite.topic.name")))
		})
	}
}

func TestRepositoryPath(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"/home/somebody/deletion-conformance/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"github.com/deletion-conformance/deletion-conformance/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"/suites/clone/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"/home/somebody/deletion-conformance/framework/barrier.go", "framework/barrier.go"},
		{"/somebody/framework/clone/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"elsewhere.go", "elsewhere.go"},
	} {
		if got := RepositoryPath(test.file); got != test.want {
			t.Errorf("%s: want %s, got %s", test.file, test.want, got)
		}
	}
}

func TestLacks(t *testing.T) {
	missing := map[v1alpha1.Need]string{v1alpha1.GC: "no garbage collector answered", v1alpha1.Node: "no node is ready"}
	for _, test := range []struct {
		name, server, since string
		needs               []v1alpha1.Need
		want                string
	}{
		{"nothing is missing", "v1.36.3", "", []v1alpha1.Need{}, ""},
		{"one of two needs is missing", "v1.36.3", "", []v1alpha1.Need{v1alpha1.GC}, "no garbage collector answered"},
		{"the first that is missing is named", "v1.36.3", "", []v1alpha1.Need{v1alpha1.GC, v1alpha1.Node}, "no garbage collector answered"},
		{"a need comes before the version", "v1.26.0", "1.30", []v1alpha1.Need{v1alpha1.Node}, "no node is ready"},
		{"newer than since", "v1.36.3", "1.30", nil, ""},
		{"exactly since", "v1.30.0", "1.30", nil, ""},
		{"a later patch of since", "v1.30.14", "1.30", nil, ""},
		{"a pre-release of since", "v1.30.0-alpha.1", "1.30", nil, ""},
		{"a vendor's ending, new enough", "v1.29.6-eks-123", "1.29", nil, ""},
		{"a vendor's ending, too old", "v1.29.6-eks-123", "1.30", nil, "needs Kubernetes 1.30 or newer; this server is v1.29.6-eks-123"},
		{"build metadata", "v1.33.1+k3s1", "1.33", nil, ""},
		{"too old", "v1.26.0", "1.30", nil, "needs Kubernetes 1.30 or newer; this server is v1.26.0"},
		{"minors are numbers, not text", "v1.9.0", "1.27", nil, "needs Kubernetes 1.27 or newer; this server is v1.9.0"},
		{"an old server without since", "v1.26.0", "", nil, ""},
		{"a version that cannot be read", "a fork", "1.30", nil, `needs Kubernetes 1.30 or newer, and the server's version "a fork" cannot be read`},
		{"no version, and none needed", "", "", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			terms := Terms{ServerVersion: test.server, Missing: missing}
			if got := terms.lacks(v1alpha1.Behavior{Needs: test.needs, Since: test.since}); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestSelectorNamesRunAndWorker(t *testing.T) {
	selector := Terms{Run: "dcabc", Worker: 2}.selector()
	for _, part := range []string{RunLabel + "=dcabc", WorkerLabel + "=2"} {
		if !strings.Contains(selector, part) {
			t.Errorf("want %s in %s", part, selector)
		}
	}
}
