package preflight

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

func TestSlowness(t *testing.T) {
	for _, test := range []struct {
		name    string
		latency Latency
		want    float64
	}{
		{"nothing is known", Latency{}, 1},
		{"a fast cluster", Latency{Read: 3 * time.Millisecond}, 1},
		{"one that is far away", Latency{Read: 200 * time.Millisecond}, 4},
		{"one that hardly answers", Latency{Read: 20 * time.Second}, maxSlow},
	} {
		if got := test.latency.Slowness(); got != test.want {
			t.Errorf("%s: want %g, got %g", test.name, test.want, got)
		}
	}
}

func TestDistance(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Latency{}.Distance()).To(BeZero(), "nothing is known")
	g.Expect(Latency{Single: 100 * time.Millisecond, Read: 110 * time.Millisecond}.Distance()).To(Equal(100 * time.Millisecond))
	g.Expect(Latency{Single: 20 * time.Millisecond, Read: 100 * time.Millisecond}.Distance()).To(BeZero())
}

func TestLatency_Waits(t *testing.T) {
	g := NewWithT(t)
	settings := session.Settings{Slowness: 4}
	g.Expect(settings.Timeout()).To(Equal(2 * time.Minute))
	g.Expect(settings.SettlingTime()).To(Equal(2 * time.Second))
	g.Expect(settings.Slowed(10 * time.Second)).To(Equal(40 * time.Second))

	chosen := session.Settings{Slowness: 4, WaitTimeout: time.Second, Settle: time.Millisecond}
	g.Expect(chosen.Timeout()).To(Equal(time.Second))
	g.Expect(chosen.SettlingTime()).To(Equal(time.Millisecond))
	g.Expect(chosen.Slowed(10*time.Second)).To(Equal(40*time.Second), "what no flag sets is longer nevertheless")
}
