package e2e

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

func TestRun_ConcurrentRuns(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)

	first, second := c.begin(t).Session(1).GroupDomain, c.begin(t).Session(1).GroupDomain

	g.Expect(first).NotTo(Equal(second))
	for _, domain := range []string{first, second} {
		number, below, _ := strings.Cut(domain, ".")
		g.Expect(below).To(Equal(framework.Domain))
		g.Expect(number).To(MatchRegexp("^[1-9][0-9]?$"), "not named after the run")
	}
}

// After the API server has started, a namespace may be deleted without its custom resources, because discovery does not show them yet.
func TestTeardown_CustomResources(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)
	begun := c.begin(t)
	things := dynamic.NewForConfigOrDie(c.config).Resource(schema.GroupVersionResource{
		Group: begun.Session(1).CustomGroup(), Version: "v1", Resource: "things",
	}).Namespace(metav1.NamespaceDefault)
	thing := fixtures.CustomResource(begun.Session(1).CustomGroup(), "held-"+begun.Session(1).Run)
	thing.SetLabels(map[string]string{session.RunLabel: begun.Session(1).Run})
	thing.SetFinalizers([]string{framework.Hold})
	g.Eventually(func() error {
		_, err := things.Create(t.Context(), thing, metav1.CreateOptions{})
		return err
	}).WithTimeout(waitTimeout).WithPolling(polling).Should(Succeed(), "the kind is served")

	g.Expect(begun.Teardown(t.Context())).To(Succeed())
}

// begin sets up a run with custom kinds, and tears it down at the end of the test.
func (c *cluster) begin(t *testing.T) *environment.Environment {
	t.Helper()
	g := NewWithT(t)
	unprobed := map[v1alpha1.Feature]string{}
	for _, feature := range v1alpha1.Features {
		unprobed[feature] = "not asked here"
	}
	begun, err := environment.Setup(t.Context(), c.config, environment.Options{
		Settings: session.DefaultSettings(), Run: environment.NewRunID(), CustomKinds: true, Unsupported: unprobed,
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(begun.Teardown(context.WithoutCancel(t.Context()))).To(Succeed()) })
	return begun
}
