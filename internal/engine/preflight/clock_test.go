package preflight

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestSkewBetween(t *testing.T) {
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

func TestSkewOfNode(t *testing.T) {
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
