package injection

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

func named(name string) *Fault {
	return All[slices.IndexFunc(All, func(fault *Fault) bool { return fault.Name == name })]
}

func TestInjector_None(t *testing.T) {
	g := NewWithT(t)
	none, err := Begin(t.Context(), Selection{}, Cluster{})
	g.Expect(err).NotTo(HaveOccurred())
	none.StartRound(nil)
	none.AwaitServer()
	g.Expect(none.Inject(t.Context(), nil, generate.Intent{Fault: "refuse"})).To(Succeed())
	faults, requests := none.EndRound()
	g.Expect(faults).To(BeEmpty())
	g.Expect(requests).To(BeEmpty())
	g.Expect(none.Drawn()).To(BeEmpty())
	g.Expect(none.LeftOut()).To(BeEmpty())
	none.Close()
}

func TestBegin_Unsupported(t *testing.T) {
	cluster := Cluster{Settings: session.Config{Unsupported: map[v1alpha1.Feature]string{
		v1alpha1.Hook: "no webhooks here", v1alpha1.OwnCluster: "the cluster was not created for this run",
	}}}

	t.Run("named", func(t *testing.T) {
		g := NewWithT(t)
		for name, reason := range map[string]string{"refuse": "no webhooks here", "restart": "not created for this run"} {
			_, err := Begin(t.Context(), Selection{Faults: []*Fault{named("watch-end"), named(name)}}, cluster)
			g.Expect(err).To(MatchError(clients.ErrSkipped))
			g.Expect(err).To(MatchError(And(ContainSubstring("the fault "+name+" cannot be injected"), ContainSubstring(reason))))
		}
	})
	t.Run("all", func(t *testing.T) {
		g := NewWithT(t)
		i, err := Begin(t.Context(), Selection{Faults: All, Possible: true}, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(i.LeftOut()).To(HaveLen(4))
		g.Expect(i.Drawn()).To(ConsistOf(HaveField("Name", "watch-end"), HaveField("Name", "namespace")))
	})
}

// switches record what is stopped and started.
type switches struct {
	mu   sync.Mutex
	done []string
	// starting is called when the API server is started.
	starting func() error
}

func (s *switches) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, what)
	return nil
}

// serve serves the switches of some components, and returns settings of a cluster with them that was created for the run.
func (s *switches) serve(t *testing.T, components ...component.Component) session.Config {
	t.Helper()
	g := NewWithT(t)
	dir, err := os.MkdirTemp("", "injection-") // the path of a socket must be short
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	served := map[component.Component]component.Switch{}
	for _, which := range components {
		served[which] = component.Switch{
			Stop: func(context.Context) error { return s.note("stop " + string(which)) },
			Start: func(context.Context) error {
				if which == component.APIServer && s.starting != nil {
					return s.starting()
				}
				return s.note("start " + string(which))
			},
		}
	}
	serving, err := component.Serve(filepath.Join(dir, "socket"), served, component.StaticPods{}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = serving.Close() })
	return session.Config{Components: filepath.Join(dir, "socket")}
}

func TestRestart_Components(t *testing.T) {
	g, s := NewWithT(t), &switches{}
	settings := s.serve(t, component.ControllerManager, component.Scheduler, component.APIServer)
	i, err := Begin(t.Context(), Selection{Faults: []*Fault{named("restart")}}, Cluster{Settings: settings})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(i.parts).To(HaveLen(3))
	s.done = nil // starting those that run has no effect
	g.Expect(i.Inject(t.Context(), nil, generate.Intent{Fault: "restart", Object: 0})).To(Succeed())
	g.Expect(i.HasInterrupted(time.Time{})).To(BeFalse(), "the API server was not restarted")
	i.EndRound()
	s.done = nil
	before := time.Now()

	g.Expect(i.Inject(t.Context(), nil, generate.Intent{Fault: "restart", Object: 2})).To(Succeed())
	g.Expect(i.HasInterrupted(before)).To(BeTrue())
	g.Expect(i.HasInterrupted(time.Now())).To(BeFalse())

	g.Expect(s.done).To(Equal([]string{"stop kube-scheduler", "stop kube-apiserver", "start kube-apiserver", "start kube-scheduler"}))
	faults, _ := i.EndRound()
	g.Expect(faults).To(ConsistOf(HaveField("Effect", "kube-scheduler and kube-apiserver restarted")))
}

func TestRestart_SomeComponents(t *testing.T) {
	g, s := NewWithT(t), &switches{}
	i, err := Begin(t.Context(), Selection{Faults: []*Fault{named("restart")}}, Cluster{Settings: s.serve(t, component.ControllerManager)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(i.parts).To(HaveLen(1))

	_, err = Begin(t.Context(), Selection{Faults: []*Fault{named("restart")}}, Cluster{Settings: s.serve(t, component.Kubelet)})
	g.Expect(err).To(MatchError(ContainSubstring("only possible on an embedded cluster")))
}

func TestRestart_OtherClientsWait(t *testing.T) {
	g, s := NewWithT(t), &switches{}
	starting, finish := make(chan struct{}), make(chan error)
	settings := s.serve(t, component.Scheduler, component.APIServer)
	i, err := Begin(t.Context(), Selection{Faults: []*Fault{named("restart")}}, Cluster{Settings: settings})
	g.Expect(err).NotTo(HaveOccurred())
	i.AwaitServer()
	s.starting = func() error { close(starting); return <-finish }
	ended, continued := make(chan error), make(chan struct{})
	go func() { ended <- i.Inject(t.Context(), nil, generate.Intent{Fault: "restart", Object: 1}) }()
	g.Eventually(starting).Should(BeClosed())
	go func() { i.AwaitServer(); close(continued) }()

	g.Consistently(continued).WithTimeout(50 * time.Millisecond).ShouldNot(BeClosed())
	finish <- errors.New("it does not start")

	g.Eventually(continued).Should(BeClosed())
	g.Eventually(ended).Should(Receive(MatchError(ContainSubstring("it does not start"))))
}

func TestRestart_ControllerOfResource(t *testing.T) {
	deployment := session.Controller{Namespace: "widgets", Name: "operator"}
	for name, test := range map[string]struct {
		settings session.Settings
		parts    int
	}{
		"disruptive":     {session.Settings{Controller: deployment, Disruptive: true}, 1},
		"not disruptive": {session.Settings{Controller: deployment}, 0},
		"in process":     {session.Settings{Controller: session.Controller{Socket: "/socket"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := &Injector{cluster: Cluster{Settings: session.Config{
				Settings: test.settings, Unsupported: map[v1alpha1.Feature]string{v1alpha1.OwnCluster: "not created for this run"},
			}}}
			err := findParts(t.Context(), i)
			g.Expect(i.parts).To(HaveLen(test.parts))
			g.Expect(err == nil).To(Equal(test.parts > 0))
		})
	}
}

func TestEndWatch(t *testing.T) {
	g := NewWithT(t)
	watchers := watching.Of(client.Namespaces, nil, "quiet", false)
	i, err := Begin(t.Context(), Selection{Faults: []*Fault{named("watch-end")}}, Cluster{Watchers: watchers})
	g.Expect(err).NotTo(HaveOccurred())
	for object := range 2 * len(watchers) {
		g.Expect(i.Inject(t.Context(), nil, generate.Intent{Fault: "watch-end", Object: object})).To(Succeed())
	}
	faults, _ := i.EndRound()
	g.Expect(faults).To(HaveLen(2 * len(watchers)))
	g.Expect(faults[3].Effect).To(Equal("the watch by label ended"))
}
