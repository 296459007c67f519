package e2e

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

func TestRunsAtTheSameTimeDefineTheirKindsInDomainsOfTheirOwn(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)
	unprobed := map[v1alpha1.Feature]string{}
	for _, need := range v1alpha1.Features {
		unprobed[need] = "not asked here"
	}
	begin := func() (domain string) {
		made, err := environment.Setup(t.Context(), c.config, environment.Options{
			Settings: session.DefaultSettings(), Run: environment.NewRunID(), CustomKinds: true, Unsupported: unprobed,
		})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(made.Teardown(context.WithoutCancel(t.Context()))).To(Succeed()) })
		return made.Session(1).GroupDomain
	}

	first, second := begin(), begin()

	g.Expect(first).NotTo(Equal(second))
	for _, domain := range []string{first, second} {
		number, below, _ := strings.Cut(domain, ".")
		g.Expect(below).To(Equal(framework.Domain))
		g.Expect(number).To(MatchRegexp("^[1-9][0-9]?$"), "not named after the run")
	}
}
