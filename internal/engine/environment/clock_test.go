package environment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestSkewIsWhatStampsInWholeSecondsCanTell(t *testing.T) {
	sent := time.Date(2026, 3, 4, 5, 6, 7, 900_000_000, time.UTC)
	received := sent.Add(200 * time.Millisecond)
	g := NewWithT(t)
	g.Expect(skewBetween(sent, received, sent.Truncate(time.Second))).To(BeZero(), "stamped before the next second")
	g.Expect(skewBetween(sent, received, received.Truncate(time.Second))).To(BeZero(), "stamped in the next second")
	ahead := skewBetween(sent, received, sent.Add(90*time.Second).Truncate(time.Second))
	g.Expect(ahead).To(BeNumerically("~", 90*time.Second, time.Second))
	behind := skewBetween(sent, received, sent.Add(-90*time.Second).Truncate(time.Second))
	g.Expect(behind).To(BeNumerically("~", -90*time.Second, time.Second))
}

func TestTheSkewOfANodeIsTheLeastThatItsLeaseAllows(t *testing.T) {
	stored := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, test := range map[string]struct {
		renewed     string
		fields      string
		least, most time.Duration
	}{
		"clocks that agree, in the same second":   {"2026-03-04T05:06:07.900000Z", `{"f:spec":{"f:renewTime":{}}}`, 0, 0},
		"clocks that agree, in the second before": {"2026-03-04T05:06:06.900000Z", `{"f:spec":{"f:renewTime":{}}}`, 0, 0},
		"a node ahead":                      {"2026-03-04T05:07:37.500000Z", `{"f:spec":{"f:renewTime":{}}}`, 88 * time.Second, 90 * time.Second},
		"a node behind":                     {"2026-03-04T05:05:37.500000Z", `{"f:spec":{"f:renewTime":{}}}`, -32 * time.Second, -30 * time.Second},
		"a node slightly behind":            {"2026-03-04T05:06:06.500000Z", `{"f:spec":{"f:renewTime":{}}}`, -3 * time.Second, -time.Second},
		"a server that records no managers": {"2026-03-04T05:07:37.500000Z", `{}`, 0, 0},
		"a lease that was never renewed":    {"", `{"f:spec":{"f:renewTime":{}}}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &client.Object{Object: map[string]any{"spec": map[string]any{"renewTime": test.renewed}}}
			lease.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kubelet", Time: new(metav1.NewTime(stored)), FieldsV1: &metav1.FieldsV1{Raw: []byte(test.fields)}},
			})
			NewWithT(t).Expect(skewOfNode(lease)).To(And(BeNumerically(">=", test.least), BeNumerically("<=", test.most)))
		})
	}
}

func TestARunWhoseClockDiffersIsAlive(t *testing.T) {
	for _, skew := range []time.Duration{-90 * time.Second, 0, 90 * time.Second} {
		lease := &client.Object{Object: map[string]any{"spec": map[string]any{
			"renewTime": renewTime(skew), "leaseDurationSeconds": int64(leaseDuration / time.Second),
		}}}
		_, alive := fresh(lease, time.Now().Add(skew)) // by the server's clock, as a cleanup would
		NewWithT(t).Expect(alive).To(BeTrue(), "%s", skew)
	}
}

func TestCloudsAreToldByProviderIDs(t *testing.T) {
	for id, cloud := range map[string]string{
		"": "", "kind://docker/kind/kind-control-plane": "", "k3s://server": "", "kwok://a": "",
		"aws:///eu-west-1a/i-0123": "aws", "gce://project/zone/name": "gce", "ocid1.instance.oc1": "provider id ocid1.instance.oc1",
	} {
		node := &client.Object{Object: map[string]any{}}
		_ = unstructured.SetNestedField(node.Object, id, "spec", "providerID")
		NewWithT(t).Expect(cloudOf(node)).To(Equal(cloud), id)
	}
}

func TestOpenShiftChoosesUsersUnlessTheOverlayDoes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(withoutUsers(nil)).To(Equal(map[string]any{"spec": map[string]any{
		"securityContext": map[string]any{"runAsUser": nil, "runAsGroup": nil, "fsGroup": nil},
	}}))
	chosen := map[string]any{"spec": map[string]any{"securityContext": map[string]any{"fsGroup": int64(7)}}}
	g.Expect(withoutUsers(chosen)).To(HaveKeyWithValue("spec", HaveKeyWithValue("securityContext", HaveKeyWithValue("fsGroup", int64(7)))))
	g.Expect(chosen["spec"]).To(HaveKeyWithValue("securityContext", HaveLen(1)), "the settings stay as they are")
}
