package controller

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ argument, namespace, invalid string }{
		{"deploy/operator", "widgets", ""},
		{"deployment/operator", "widgets", ""},
		{"deployments.apps/operator", "widgets", ""},
		{"operator", "widgets", "has no type: write deploy/operator"},
		{"sts/operator", "widgets", "only Deployments are supported"},
		{"deploy/", "widgets", "names no Deployment"},
		{"deploy/Operator", "widgets", "names no Deployment"},
		{"deploy/operator", "", "has no namespace"},
		{"deploy/operator", "wid/gets", "which is not a valid name"},
	} {
		t.Run(test.argument+" in "+test.namespace, func(t *testing.T) {
			g := NewWithT(t)
			parsed, err := Parse(test.argument, test.namespace)
			if test.invalid != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.invalid)))
				g.Expect(parsed.IsNamed()).To(BeFalse())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parsed).To(Equal(Controller{Namespace: "widgets", Name: "operator"}))
		})
	}
}

// deployment returns a Deployment as the API server returns it.
func deployment(labels map[string]string, replicas any, available int64) *client.Object {
	object := Controller{Namespace: "widgets", Name: "operator"}.Object()
	object.SetLabels(labels)
	object.Object["spec"] = map[string]any{}
	if replicas != nil {
		object.Object["spec"] = map[string]any{"replicas": replicas}
	}
	object.Object["status"] = map[string]any{"availableReplicas": available}
	return object
}

func TestAtWork(t *testing.T) {
	stopped := map[string]string{StoppedByLabel: "dc1"}
	g := NewWithT(t)
	g.Expect(AtWork(deployment(nil, int64(2), 1))).To(Succeed())
	g.Expect(AtWork(deployment(nil, nil, 1))).To(Succeed(), "1 is the default")
	g.Expect(AtWork(deployment(nil, int64(1), 0))).To(MatchError(ContainSubstring("no pod of Deployment \"operator\" in namespace \"widgets\" is available")))
	g.Expect(AtWork(deployment(nil, int64(0), 0))).To(MatchError(ContainSubstring("has 0 replicas")))
	g.Expect(AtWork(deployment(stopped, int64(0), 0))).To(MatchError(ContainSubstring("`runner cleanup --run dc1 --controller deploy/operator --controller-namespace widgets`")))
}

func TestFormer(t *testing.T) {
	had := map[string]string{StoppedByLabel: "dc1", replicasLabel: "3"}
	g := NewWithT(t)
	g.Expect(former(deployment(had, int64(0), 0))).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(former(deployment(had, int64(2), 0))).To(BeNil())
	g.Expect(former(deployment(nil, int64(0), 0))).To(BeNil(), "nobody says how many it had")
}
