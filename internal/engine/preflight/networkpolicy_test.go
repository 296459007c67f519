package preflight

import (
	"testing"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsolating(t *testing.T) {
	policy := func(name string, spec networkingv1.NetworkPolicySpec) networkingv1.NetworkPolicy {
		return networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	types := func(types ...networkingv1.PolicyType) []networkingv1.PolicyType { return types }
	in, out := networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	denyAll := policy("deny-all", networkingv1.NetworkPolicySpec{PolicyTypes: types(in, out)})
	allowIn := policy("allow-in", networkingv1.NetworkPolicySpec{PolicyTypes: types(in), Ingress: []networkingv1.NetworkPolicyIngressRule{{}}})
	within := policy("within", networkingv1.NetworkPolicySpec{
		PolicyTypes: types(in, out),
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
	})
	dns := policy("dns", networkingv1.NetworkPolicySpec{
		PolicyTypes: types(out), Egress: []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{{}}}},
	})
	for name, test := range map[string]struct {
		policies []networkingv1.NetworkPolicy
		want     string
	}{
		"none":                          {nil, ""},
		"everything is denied":          {[]networkingv1.NetworkPolicy{denyAll}, `NetworkPolicy "deny-all"`},
		"one direction is open":         {[]networkingv1.NetworkPolicy{denyAll, allowIn}, `NetworkPolicy "deny-all"`},
		"pods of the namespace may":     {[]networkingv1.NetworkPolicy{denyAll, within}, ""},
		"one port is not all of them":   {[]networkingv1.NetworkPolicy{dns}, `NetworkPolicy "dns"`},
		"what is allowed is not denied": {[]networkingv1.NetworkPolicy{allowIn}, ""},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isolating(test.policies)).To(Equal(test.want)) })
	}
}
