package preflight

import (
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestFindings_Announced(t *testing.T) {
	g := NewWithT(t)
	pod, node := client.NotServed(fixtures.UnscheduledPod("").GroupVersionKind()), client.NotServed(fixtures.Node("").GroupVersionKind())
	result := &Result{
		target: Target{Behaviors: []v1alpha1.Behavior{
			{ID: "of.a-node", Features: []v1alpha1.Feature{v1alpha1.Node}}, {ID: "of.a-pod"}, {ID: "of.two-kinds"}, {ID: "of.a-config-map"}, {ID: "refused"},
		}},
		missing: map[v1alpha1.Feature]skipReason{v1alpha1.Node: {text: node}},
		skips: []skip{
			{skipReason{check: kindsCheck, text: pod}, []string{"of.a-node", "of.a-pod", "of.two-kinds", "refused"}, true},
			{skipReason{check: kindsCheck, text: client.NotServed(fixtures.ReplicaSet("").GroupVersionKind())}, []string{"of.two-kinds"}, true},
			{skipReason{check: credentialsCheck, text: "missing permission: patch pods/status"}, []string{"of.a-pod"}, true},
			{skipReason{check: admissionCheck, text: "denied"}, []string{"refused"}, false},
		},
	}

	skips := map[string][]string{}
	for _, finding := range result.Findings() {
		if finding.Severity == v1alpha1.Skips {
			skips[finding.Cause] = finding.Behaviors
		}
	}
	g.Expect(skips).To(Equal(map[string][]string{
		"the server does not serve Node (v1), Pod (v1), ReplicaSet (apps/v1)": {"of.a-node", "of.a-pod", "of.two-kinds"},
		"missing permission: patch pods/status":                               {"of.a-pod"},
		"denied":                                                              {"refused"},
	}))
	g.Expect(result.Apply(session.Config{}).SkipReasons).To(Equal(map[string]string{"refused": "denied"}), "the others skip themselves")
}

func TestParsePermission(t *testing.T) {
	for text, want := range map[string]authorizationv1.ResourceAttributes{
		"patch pods/status": {Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "dcx7k2p9q4-1"},
		"update cronjobs/finalizers.batch": {
			Verb: "update", Group: "batch", Resource: "cronjobs", Subresource: "finalizers", Namespace: "dcx7k2p9q4-1",
		},
		"create tokenreviews.authentication.k8s.io everywhere": {Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
	} {
		NewWithT(t).Expect(parsePermission(text, "dcx7k2p9q4-1")).To(Equal(want), text)
	}
}
