package preflight

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
)

func TestProbeControlledPods_KnownControllers(t *testing.T) {
	t.Parallel()
	without := session.Config{Unsupported: map[v1alpha1.Feature]string{v1alpha1.KCM: "the cluster was created without controllers"}}
	for name, test := range map[string]struct {
		target Target
		probed bool
	}{
		"nothing is known about the controllers": {Target{}, true},
		"they are missing":                       {Target{Config: without}, false},
		"they were started for the run":          {Target{Supported: []v1alpha1.Feature{v1alpha1.KCM}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			target := test.target
			client, asked := asking(t, http.NotFound)
			target.Client, target.Run, target.Namespace = client, "dcx7k2p9q4", "dcx7k2p9q4-1"
			target.Behaviors = []v1alpha1.Behavior{{ID: "cascade.orphan.adoption"}}

			g.Expect(probeControlledPods(t.Context(), target, admission.Mutators{})).To(BeEmpty())

			g.Expect(asked.Load() > 0).To(Equal(test.probed))
		})
	}
}
