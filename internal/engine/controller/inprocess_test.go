package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

func TestServer_StopWhileConnected(t *testing.T) {
	g := NewWithT(t)
	var running, starts atomic.Int32
	server, err := Listen()
	g.Expect(err).NotTo(HaveOccurred())
	server.Serve(func(ctx context.Context) error {
		starts.Add(1)
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	}, func(err error) {
		t.Error("the controller was stopped, but is reported to have returned by itself:", err)
	})
	g.Eventually(running.Load).Should(BeEquivalentTo(1))

	for range 2 {
		start, err := Pause(t.Context(), server.Controller())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running.Load()).To(BeZero())
		g.Expect(start()).To(Succeed())
		g.Eventually(running.Load).Should(BeEquivalentTo(1))
	}

	g.Expect(server.Close()).To(Succeed())
	g.Expect(running.Load()).To(BeZero())
	g.Expect(starts.Load()).To(BeEquivalentTo(3))
	_, err = Pause(t.Context(), server.Controller())
	g.Expect(err).To(MatchError(ContainSubstring("stop the controller: ")))
}

func TestServer_ControllerEnds(t *testing.T) {
	g := NewWithT(t)
	broken := errors.New("no kind is registered")
	returned := make(chan error, 1)
	server, err := Listen()
	g.Expect(err).NotTo(HaveOccurred())
	server.Serve(func(context.Context) error { return broken }, func(err error) { returned <- err })

	g.Eventually(returned).Should(Receive(MatchError(broken)))

	_, err = Pause(t.Context(), server.Controller())
	g.Expect(err).To(MatchError(ContainSubstring(broken.Error())))
	g.Expect(server.Close()).To(MatchError(broken))
}
