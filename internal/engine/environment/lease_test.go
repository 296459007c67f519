package environment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func leaseOf(spec map[string]any) *client.Object {
	return &client.Object{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}}
}

func TestFresh(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, test := range []struct {
		name  string
		lease *client.Object
		until time.Time
		fresh bool
	}{
		{"just renewed", leaseOf(map[string]any{"renewTime": "2024-05-06T07:08:09.000000Z", "leaseDurationSeconds": int64(30)}), now.Add(30 * time.Second), true},
		{"with microseconds", leaseOf(map[string]any{"renewTime": "2024-05-06T07:07:39.000001Z", "leaseDurationSeconds": int64(30)}), now.Add(time.Microsecond), true},
		{"in another time zone", leaseOf(map[string]any{"renewTime": "2024-05-06T09:08:09+02:00", "leaseDurationSeconds": int64(30)}), now.Add(30 * time.Second), true},
		{"at its end", leaseOf(map[string]any{"renewTime": "2024-05-06T07:07:39Z", "leaseDurationSeconds": int64(30)}), now, false},
		{"long over", leaseOf(map[string]any{"renewTime": "2024-05-06T06:08:09Z", "leaseDurationSeconds": int64(30)}), now.Add(time.Minute/2 - time.Hour), false},
		{"never renewed", leaseOf(map[string]any{"leaseDurationSeconds": int64(30)}), time.Time{}, false},
		{"malformed", leaseOf(map[string]any{"renewTime": "yesterday", "leaseDurationSeconds": int64(30)}), time.Time{}, false},
		{"without a duration", leaseOf(map[string]any{"renewTime": "2024-05-06T07:08:09Z"}), now, false},
		{"empty", &client.Object{Object: map[string]any{}}, time.Time{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			until, ok := fresh(test.lease, now)
			g.Expect(ok).To(Equal(test.fresh))
			g.Expect(until).To(BeTemporally("==", test.until))
		})
	}
}

func TestYoung(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	made := func(ago time.Duration) *client.Object {
		namespace := fixtures.Namespace("dc-1")
		namespace.SetCreationTimestamp(metav1.NewTime(now.Add(-ago)))
		return namespace
	}
	until, alive := young(made(10*time.Second), now)
	g.Expect(alive).To(BeTrue(), "its run may be about to make a lease")
	g.Expect(until).To(BeTemporally("==", now.Add(20*time.Second)))
	_, alive = young(made(leaseDuration), now)
	g.Expect(alive).To(BeFalse(), "its run has had its time")
	dying := made(10 * time.Second)
	dying.SetDeletionTimestamp(new(metav1.NewTime(now)))
	_, alive = young(dying, now)
	g.Expect(alive).To(BeFalse(), "its run is at its end")
}

func TestLeaseRenewal(t *testing.T) {
	NewWithT(t).Expect(leaseDuration).To(BeNumerically(">=", 2*leaseRenewal), "one renewal may fail")
}

func TestRelease_NoLease(*testing.T) { (*lease)(nil).release() }

func TestFresh_Skew(t *testing.T) {
	for _, skew := range []time.Duration{-90 * time.Second, 0, 90 * time.Second} {
		lease := &client.Object{Object: map[string]any{"spec": map[string]any{
			"renewTime": renewTime(skew), "leaseDurationSeconds": int64(leaseDuration / time.Second),
		}}}
		_, alive := fresh(lease, time.Now().Add(skew)) // by the server's clock, as a cleanup would
		NewWithT(t).Expect(alive).To(BeTrue(), "%s", skew)
	}
}
