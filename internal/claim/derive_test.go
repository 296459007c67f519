package claim

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestConclusion_LaterVersion(t *testing.T) {
	of := func(since, server, reason string) v1alpha1.ProfileConclusion {
		behavior := func(id, since string) v1alpha1.Behavior {
			return v1alpha1.Behavior{ID: id, Level: v1alpha1.Core, Since: since}
		}
		return resultOf(v1alpha1.ProfileAPI, v1alpha1.Cluster{ServerVersion: server, Results: []v1alpha1.Result{
			{Behavior: behavior("options.tested", ""), Outcome: v1alpha1.Passed},
			{Behavior: behavior("options.skipped", since), Outcome: v1alpha1.Skipped, Reason: reason},
		}}).Conclusion
	}
	g := NewWithT(t)
	g.Expect(of("1.36", "v1.34.4", "requires Kubernetes 1.36 or newer; the version of the server is v1.34.4")).To(Equal(v1alpha1.ProfilePassed))
	g.Expect(of("1.30", "v1.34.4", "a policy prevents it")).To(Equal(v1alpha1.ProfilePartial))
	g.Expect(of("", "v1.34.4", "requires Kubernetes 1.36 or newer; the version of the server is v1.34.4")).To(Equal(v1alpha1.ProfilePartial), "a forged reason")
	g.Expect(of("1.36", "unknown", "requires Kubernetes 1.36 or newer")).To(Equal(v1alpha1.ProfilePartial))
}
