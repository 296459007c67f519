package component

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// socket returns a path for a socket, which must be short.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "component-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "socket")
}

func serveSwitches(t *testing.T, path string, switches map[Component]Switch) {
	t.Helper()
	served, err := Serve(path, switches, StaticPods{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = served.Close() })
}

func TestStopAndStart(t *testing.T) {
	var stopped atomic.Bool
	path := socket(t)
	serveSwitches(t, path, map[Component]Switch{Kubelet: {
		Stop:  func(context.Context) error { stopped.Store(true); return nil },
		Start: func(context.Context) error { return errors.New("it does not want to") },
	}})
	if err := Stop(t.Context(), path, Kubelet); err != nil || !stopped.Load() {
		t.Errorf("want it to be stopped when Stop returns, got %v, %v", stopped.Load(), err)
	}
	if err := Start(t.Context(), path, Kubelet); err == nil || !strings.Contains(err.Error(), "start the kubelet: it does not want to") {
		t.Errorf("want to be told why, got: %v", err)
	}
	if err := Stop(t.Context(), path, ControllerManager); !errors.Is(err, ErrUnsupported) {
		t.Errorf("want to be told that nobody can, got: %v", err)
	}
	if err := Stop(t.Context(), "", Kubelet); !errors.Is(err, ErrUnsupported) {
		t.Errorf("want to be told that nobody can without a socket, got: %v", err)
	}
}

func TestHold(t *testing.T) {
	g := NewWithT(t)
	var running atomic.Bool
	path := socket(t)
	serveSwitches(t, path, map[Component]Switch{Kubelet: {
		Stop:  func(context.Context) error { running.Store(false); return nil },
		Start: func(context.Context) error { running.Store(true); return nil },
	}})
	running.Store(true)
	hold := func(ctx context.Context) func(context.Context) error {
		t.Helper()
		release, err := Hold(ctx, path, Kubelet)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running.Load()).To(BeFalse(), "it is stopped when Hold returns")
		return release
	}

	first, second := hold(t.Context()), hold(t.Context())
	g.Expect(first(t.Context())).To(Succeed())
	g.Expect(running.Load()).To(BeFalse(), "the second one holds it")
	g.Expect(first(t.Context())).To(Succeed(), "twice is once")
	g.Expect(running.Load()).To(BeFalse())
	g.Expect(second(t.Context())).To(Succeed())
	g.Expect(running.Load()).To(BeTrue(), "it runs when the last one returns")

	ended, end := context.WithCancel(t.Context())
	third := hold(ended)
	end()
	g.Consistently(running.Load).WithTimeout(100*time.Millisecond).Should(BeFalse(), "only the call ends with its context")
	g.Expect(third(t.Context())).To(Succeed())
	g.Expect(running.Load()).To(BeTrue())

	_, err := Hold(t.Context(), path, Runtime)
	g.Expect(err).To(MatchError(ErrUnsupported))
	_, err = Hold(ended, path, Kubelet)
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestHold_FailedStart(t *testing.T) {
	g := NewWithT(t)
	var starts atomic.Int32
	path := socket(t)
	serveSwitches(t, path, map[Component]Switch{Kubelet: {
		Stop: func(context.Context) error { return nil },
		Start: func(context.Context) error {
			if starts.Add(1) == 1 {
				return errors.New("not now")
			}
			return nil
		},
	}})
	release, err := Hold(t.Context(), path, Kubelet)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(release(t.Context())).To(MatchError("start the kubelet: not now"))
	g.Eventually(starts.Load).WithTimeout(10*time.Second).Should(BeEquivalentTo(2), "when its holder is gone, it is tried again")
}

func TestKeepRunning(t *testing.T) {
	g := NewWithT(t)
	var stopped atomic.Int32
	path, does := socket(t), func(context.Context) error { return nil }
	serveSwitches(t, path, map[Component]Switch{
		Kubelet.On("n"): {Stop: func(context.Context) error { stopped.Add(1); return nil }, Start: does}, ControllerManager: {Stop: does, Start: does},
	})
	keep := func() (end func()) {
		t.Helper()
		end, err := KeepRunning(t.Context(), path, Kubelet)
		g.Expect(err).NotTo(HaveOccurred())
		return end
	}
	first, second := keep(), keep()
	held := make(chan func(context.Context) error)
	go func() {
		release, err := Hold(t.Context(), path, Kubelet.On("n"))
		if err != nil {
			t.Error(err)
		}
		held <- release
	}()
	release, err := Hold(t.Context(), path, ControllerManager)
	g.Expect(err).NotTo(HaveOccurred(), "another component is stopped at once")
	g.Expect(release(t.Context())).To(Succeed())
	first()
	g.Consistently(stopped.Load).WithTimeout(100*time.Millisecond).Should(BeZero(), "one needs it running")
	second()
	release = <-held
	g.Expect(stopped.Load()).To(BeEquivalentTo(1))

	late, give := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer give()
	_, err = KeepRunning(late, path, Kubelet)
	g.Expect(err).To(HaveOccurred(), "it is stopped")
	g.Expect(release(t.Context())).To(Succeed())
	keep()()
}

func TestWillStop(t *testing.T) {
	g := NewWithT(t)
	path, does := socket(t), func(context.Context) error { return nil }
	serveSwitches(t, path, map[Component]Switch{Kubelet.On("n"): {Stop: does, Start: does}})
	end, err := WillStop(t.Context(), path, Kubelet)
	g.Expect(err).NotTo(HaveOccurred())
	kept := make(chan func())
	go func() {
		keeping, err := KeepRunning(t.Context(), path, Kubelet)
		if err != nil {
			t.Error(err)
		}
		kept <- keeping
	}()
	g.Consistently(kept).WithTimeout(100 * time.Millisecond).ShouldNot(Receive())
	release, err := Hold(t.Context(), path, Kubelet.On("n"))
	g.Expect(err).NotTo(HaveOccurred(), "it waits for nobody")
	g.Expect(release(t.Context())).To(Succeed())
	end()
	(<-kept)()

	_, err = WillStop(t.Context(), "", Kubelet)
	g.Expect(err).To(MatchError(ErrUnsupported))
}

func TestHold_Close(t *testing.T) {
	g := NewWithT(t)
	path := socket(t)
	served, err := Serve(path, map[Component]Switch{Kubelet: {
		Stop:  func(context.Context) error { return nil },
		Start: func(context.Context) error { t.Error("it is started while the cluster is deleted"); return nil },
	}}, StaticPods{}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Hold(t.Context(), path, Kubelet)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(served.Close()).To(Succeed())
}

// TestHold_DeadHolder kills a process that holds a component: this test binary.
func TestHold_DeadHolder(t *testing.T) {
	if path := os.Getenv("HOLD_KUBELET"); path != "" {
		if _, err := Hold(t.Context(), path, Kubelet); err != nil {
			t.Fatal(err)
		}
		select {} // until it is killed
	}
	g := NewWithT(t)
	var running atomic.Bool
	stopped := make(chan struct{})
	path := socket(t)
	serveSwitches(t, path, map[Component]Switch{Kubelet: {
		Stop:  func(context.Context) error { close(stopped); return nil },
		Start: func(context.Context) error { running.Store(true); return nil },
	}})
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHold_DeadHolder$")
	holder.Env = append(os.Environ(), "HOLD_KUBELET="+path)
	g.Expect(holder.Start()).To(Succeed())
	g.Eventually(stopped).WithTimeout(10 * time.Second).Should(BeClosed())

	g.Expect(holder.Process.Kill()).To(Succeed())

	_ = holder.Wait()
	g.Eventually(running.Load).WithTimeout(10*time.Second).Should(BeTrue(), "nobody needs it stopped")
}

func TestStaticPods(t *testing.T) {
	g, manifests := NewWithT(t), map[string]string{}
	path := socket(t)
	served, err := Serve(path, nil, StaticPods{
		Put: func(node, name string, manifest []byte) error {
			manifests[name] = string(manifest) + " on " + node
			return nil
		},
		Remove: func(name string) error { delete(manifests, name); return errors.New("it is not there") },
	}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = served.Close() })
	g.Expect(PutStaticPod(t.Context(), path, "node-2", "one", []byte("a manifest"))).To(Succeed())
	g.Expect(manifests).To(HaveKeyWithValue("one", "a manifest on node-2"))
	g.Expect(RemoveStaticPod(t.Context(), path, "one")).To(MatchError("end the static pod one: it is not there"))
	g.Expect(manifests).To(BeEmpty())

	without := socket(t)
	serveSwitches(t, without, nil)
	g.Expect(PutStaticPod(t.Context(), without, "", "one", nil)).To(MatchError(ErrUnsupported))
}

func TestServe_OneRequest(t *testing.T) {
	var busy atomic.Int32
	do := func(context.Context) error {
		if busy.Add(1) > 1 {
			t.Error("two things are done at the same time")
		}
		time.Sleep(10 * time.Millisecond) // another call could come in between
		busy.Add(-1)
		return nil
	}
	path := socket(t)
	serveSwitches(t, path, map[Component]Switch{Kubelet: {Stop: do, Start: do}, ControllerManager: {Stop: do, Start: do}})
	done := make(chan error)
	for _, component := range []Component{Kubelet, ControllerManager, Kubelet} {
		go func() { done <- Stop(t.Context(), path, component) }()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestServe_Close(t *testing.T) {
	var began, ended atomic.Bool
	path := socket(t)
	served, err := Serve(path, map[Component]Switch{Kubelet: {Start: func(ctx context.Context) error {
		began.Store(true)
		<-ctx.Done()
		ended.Store(true)
		return ctx.Err()
	}}}, StaticPods{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() { failed <- Start(t.Context(), path, Kubelet) }()
	NewWithT(t).Eventually(began.Load).WithTimeout(10 * time.Second).Should(BeTrue())
	if err := served.Close(); err != nil {
		t.Error(err)
	}
	if !ended.Load() {
		t.Error("closing did not wait for what was being done")
	}
	if err := <-failed; err == nil {
		t.Error("want an error for who asked")
	}
}

func TestAuditEvents(t *testing.T) {
	g, path := NewWithT(t), socket(t)
	served, err := Serve(path, nil, StaticPods{}, func(namespace, name string) ([]byte, error) {
		return []byte("about " + namespace + "/" + name), nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = served.Close() })
	g.Expect(AuditEvents(t.Context(), path, "space", "one")).To(BeEquivalentTo("about space/one"))

	without := socket(t)
	serveSwitches(t, without, nil)
	_, err = AuditEvents(t.Context(), without, "space", "one")
	g.Expect(err).To(MatchError(ErrUnsupported))
}
