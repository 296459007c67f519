package environment

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestKept(t *testing.T) {
	k := &kept{
		specs: map[string]string{"x": "a.b"}, workers: sets.New("worker"), whole: sets.New("inside"), groups: sets.New("example.com"),
	}
	definition := func(group, strategy string) map[string]any {
		return map[string]any{"group": group, "conversion": map[string]any{"strategy": strategy}}
	}
	for name, test := range map[string]struct {
		kind, namespace, object, spec string
		fields                        map[string]any
		stays                         bool
	}{
		"an object of the spec":                    {"/ConfigMap", "worker", "a", "x", nil, true},
		"an object of another spec":                {"/ConfigMap", "worker", "a", "y", nil, false},
		"an object of no spec":                     {"/ServiceAccount", "worker", "a", "", nil, true},
		"an object elsewhere":                      {"/ConfigMap", "other", "a", "x", nil, false},
		"the lease of the run":                     {"coordination.k8s.io/Lease", "worker", leaseName, "", nil, false},
		"an object in a namespace of the spec":     {"/ConfigMap", "inside", "a", "", nil, true},
		"the namespace of the worker":              {"/Namespace", "", "worker", "", nil, true},
		"the namespace of the spec":                {"/Namespace", "", "inside", "x", nil, true},
		"the namespace of another worker":          {"/Namespace", "", "other", "", nil, false},
		"a quota":                                  {"/ResourceQuota", "inside", "a", "x", nil, false},
		"a range of limits":                        {"/LimitRange", "worker", "a", "x", nil, false},
		"a disruption budget":                      {"policy/PodDisruptionBudget", "worker", "a", "x", nil, false},
		"a network policy":                         {"networking.k8s.io/NetworkPolicy", "worker", "a", "x", nil, false},
		"a webhook":                                {"admissionregistration.k8s.io/ValidatingWebhookConfiguration", "", "a", "x", nil, false},
		"an admission policy":                      {"admissionregistration.k8s.io/ValidatingAdmissionPolicy", "", "a", "x", nil, false},
		"a binding of one":                         {"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding", "", "a", "x", nil, false},
		"an APIService":                            {"apiregistration.k8s.io/APIService", "", "a", "x", definition("example.com", ""), false},
		"a node":                                   {"/Node", "", "a", "x", nil, false},
		"a definition of an object that stays":     {"apiextensions.k8s.io/CustomResourceDefinition", "", "a", "", definition("example.com", "None"), true},
		"a definition of others":                   {"apiextensions.k8s.io/CustomResourceDefinition", "", "a", "", definition("example.org", "None"), false},
		"a definition with a webhook for versions": {"apiextensions.k8s.io/CustomResourceDefinition", "", "a", "x", definition("example.com", "Webhook"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := &client.Object{Object: map[string]any{"spec": test.fields}}
			group, kind, _ := strings.Cut(test.kind, "/")
			object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
			object.SetNamespace(test.namespace)
			object.SetName(test.object)
			if test.spec != "" {
				object.SetLabels(map[string]string{client.SpecLabel: test.spec})
			}
			g.Expect(k.has(object)).To(Equal(test.stays))
			g.Expect((*kept)(nil).has(object)).To(BeFalse())
		})
	}
}
