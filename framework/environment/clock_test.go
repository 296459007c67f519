package environment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
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

func TestARunWhoseClockDiffersIsAlive(t *testing.T) {
	for _, skew := range []time.Duration{-90 * time.Second, 0, 90 * time.Second} {
		lease := &client.Object{Object: map[string]any{"spec": map[string]any{
			"renewTime": renewTime(skew), "leaseDurationSeconds": int64(leaseDuration / time.Second),
		}}}
		_, alive := fresh(lease, time.Now().Add(skew)) // by the server's clock, as whoever cleans up sees it
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
