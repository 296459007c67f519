package environment

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestPreflight_Announced(t *testing.T) {
	g := NewWithT(t)
	pod, node := client.NotServed(fixtures.UnscheduledPod("").GroupVersionKind()), client.NotServed(fixtures.Node("").GroupVersionKind())
	connected, _ := asking(t, func(http.ResponseWriter, *http.Request) {})
	environment := &Environment{
		client: connected, options: Options{Behaviors: []v1alpha1.Behavior{
			{ID: "of.a-node", Features: []v1alpha1.Feature{v1alpha1.Node}}, {ID: "of.a-pod"}, {ID: "of.two-kinds"}, {ID: "of.a-config-map"}, {ID: "refused"},
		}},
		namespaces:  []*client.Object{fixtures.Namespace("dcx7k2p9q4-1")},
		unsupported: map[v1alpha1.Feature]string{v1alpha1.Node: node},
		obstacles: []obstacle{
			{check: kindsCheck, cause: pod, behaviors: []string{"of.a-node", "of.a-pod", "of.two-kinds", "refused"}, announced: true},
			{check: kindsCheck, cause: client.NotServed(fixtures.ReplicaSet("").GroupVersionKind()), behaviors: []string{"of.two-kinds"}, announced: true},
			{check: credentialsCheck, cause: "missing permission: patch pods/status", behaviors: []string{"of.a-pod"}, announced: true},
			{check: admissionCheck, cause: "denied", behaviors: []string{"refused"}},
		},
	}

	skips := map[string][]string{}
	for _, finding := range environment.Preflight() {
		if finding.Severity == v1alpha1.Skips {
			skips[finding.Cause] = finding.Behaviors
		}
	}
	g.Expect(skips).To(Equal(map[string][]string{
		"the server does not serve Node (v1), Pod (v1), ReplicaSet (apps/v1)": {"of.a-node", "of.a-pod", "of.two-kinds"},
		"missing permission: patch pods/status":                               {"of.a-pod"},
		"denied":                                                              {"refused"},
	}))
	g.Expect(environment.Session(1).SkipReasons).To(Equal(map[string]string{"refused": "denied"}), "the others skip themselves")
}

func TestPermissionsOfTheTable(t *testing.T) {
	environment := &Environment{namespaces: []*client.Object{fixtures.Namespace("dcx7k2p9q4-1")}}
	for text, want := range map[string]authorizationv1.ResourceAttributes{
		"patch pods/status": {Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "dcx7k2p9q4-1"},
		"update cronjobs/finalizers.batch": {
			Verb: "update", Group: "batch", Resource: "cronjobs", Subresource: "finalizers", Namespace: "dcx7k2p9q4-1",
		},
		"create tokenreviews.authentication.k8s.io everywhere": {Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
	} {
		NewWithT(t).Expect(environment.parsePermission(text)).To(Equal(want), text)
	}
}
