package figures_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// scene builds a timeline from events: the same name is the same object.
type scene struct{ v1alpha1.Timeline }

// detail adds details to an event.
type detail func(*v1alpha1.Observation)

func (s *scene) see(ms int, event, name string, details ...detail) {
	observation := v1alpha1.Observation{
		At: reporttest.Start.Add(time.Duration(ms) * time.Millisecond), Type: event,
		ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
	}
	for _, d := range details {
		d(&observation)
	}
	s.Events = append(s.Events, observation)
}

func ownedBy(names ...string) detail {
	return func(o *v1alpha1.Observation) {
		for _, name := range names {
			o.Owners = append(o.Owners, metav1.OwnerReference{Name: name, UID: types.UID("uid-" + name)})
		}
	}
}

func leaving(finalizers ...string) detail {
	return func(o *v1alpha1.Observation) {
		now := metav1.NewTime(reporttest.Start)
		o.DeletionTimestamp, o.Finalizers = &now, finalizers
	}
}

func grace(seconds int64) detail {
	return func(o *v1alpha1.Observation) { o.GraceSeconds = &seconds }
}

func kind(kind string) detail {
	return func(o *v1alpha1.Observation) { o.Kind, o.Namespace = kind, "" }
}

const (
	foreground = metav1.FinalizerDeleteDependents
	orphan     = metav1.FinalizerOrphanDependents
)

// measured returns the figures of a cluster with these scenes.
func measured(t *testing.T, scenes ...scene) []v1alpha1.Figure {
	t.Helper()
	cluster := v1alpha1.Cluster{Name: "a"}
	for _, s := range scenes {
		result := reporttest.Ran("cascade.x", "x", v1alpha1.Passed)
		result.Timeline = s.Timeline
		cluster.Results = append(cluster.Results, result)
	}
	return figures.Measure(v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster}}).Clusters[0].Figures
}

func one(operation v1alpha1.Operation, levels int, seconds float64) v1alpha1.Figure {
	return v1alpha1.Figure{Operation: operation, Levels: levels, Count: 1, P50: seconds, P90: seconds, P99: seconds, Max: seconds}
}

func TestMeasure_Background(t *testing.T) {
	var s scene
	s.see(0, "ADDED", "owner")
	s.see(1, "ADDED", "child", ownedBy("owner"))
	s.see(2, "ADDED", "grandchild", ownedBy("child"))
	s.see(100, "DELETED", "owner")
	s.see(130, "DELETED", "child", ownedBy("owner"))
	s.see(180, "DELETED", "grandchild", ownedBy("child"))
	NewWithT(t).Expect(measured(t, s)).To(Equal([]v1alpha1.Figure{
		{Operation: v1alpha1.BackgroundDelete, Count: 2, P50: 0.03, P90: 0.05, P99: 0.05, Max: 0.05},
	}))
}

func TestMeasure_BackgroundSeveralOwners(t *testing.T) {
	var two, late scene
	two.see(0, "ADDED", "first")
	two.see(0, "ADDED", "second")
	two.see(0, "ADDED", "child", ownedBy("first", "second"))
	two.see(10, "DELETED", "first")
	two.see(500, "DELETED", "second")
	two.see(520, "DELETED", "child", ownedBy("first", "second"))
	late.see(0, "ADDED", "owner")
	late.see(10, "DELETED", "owner")
	late.see(900, "ADDED", "child", ownedBy("owner"))
	late.see(960, "DELETED", "child", ownedBy("owner"))
	NewWithT(t).Expect(measured(t, two, late)).To(Equal([]v1alpha1.Figure{
		{Operation: v1alpha1.BackgroundDelete, Count: 2, P50: 0.02, P90: 0.06, P99: 0.06, Max: 0.06},
	}))
}

func TestMeasure_DelayedByOthers(t *testing.T) {
	held := func(delay ...detail) scene {
		var s scene
		s.see(0, "ADDED", "owner")
		s.see(1, "ADDED", "child", ownedBy("owner"))
		s.see(10, "DELETED", "owner")
		s.see(20, "MODIFIED", "child", append(delay, ownedBy("owner"))...)
		s.see(9000, "DELETED", "child", ownedBy("owner"), leaving())
		return s
	}
	ask := func(request v1alpha1.Request) scene {
		asked := scene{v1alpha1.Timeline{Requests: []v1alpha1.Request{request}}}
		asked.see(0, "ADDED", "owner")
		asked.see(1, "ADDED", "child", ownedBy("owner"))
		asked.see(10, "DELETED", "owner")
		asked.see(900, "DELETED", "child", ownedBy("owner"))
		return asked
	}
	ofKind := v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "ns"}
	child := ofKind
	child.Name = "child"
	var unfinished, chain, between scene
	between.see(0, "ADDED", "owner")
	between.see(1, "ADDED", "child", ownedBy("owner"))
	between.see(10, "DELETED", "owner")
	between.see(20, "MODIFIED", "child", leaving(orphan), ownedBy("owner"))
	between.see(900, "DELETED", "child", leaving(orphan), ownedBy("owner"))
	unfinished.see(0, "ADDED", "owner")
	unfinished.see(0, "ADDED", "child", ownedBy("owner", "stranger"))
	unfinished.see(9, "DELETED", "owner")
	chain.see(0, "ADDED", "owner")
	chain.see(0, "ADDED", "child", ownedBy("owner"))
	chain.see(1, "MODIFIED", "owner", leaving(foreground))
	chain.see(2, "MODIFIED", "child", leaving(framework.Hold), ownedBy("owner"))
	chain.see(9000, "DELETED", "child", ownedBy("owner"), leaving())
	chain.see(9010, "DELETED", "owner", leaving(foreground))
	g := NewWithT(t)
	g.Expect(measured(t, held(leaving(framework.Hold)), held(leaving(), grace(30)), unfinished, chain)).To(BeEmpty())
	g.Expect(measured(t, ask(v1alpha1.Request{Verb: "DELETE", Object: &child}))).To(BeEmpty())
	g.Expect(measured(t, ask(v1alpha1.Request{Verb: "DELETE", Object: &ofKind}))).To(BeEmpty())
	g.Expect(measured(t, ask(v1alpha1.Request{Verb: "POST", Object: &child, Subresource: "eviction"}))).To(BeEmpty())
	g.Expect(measured(t, ask(v1alpha1.Request{Verb: "DELETE", Object: &v1alpha1.ObjectReference{Kind: "Namespace", Name: "ns"}}))).To(BeEmpty())
	g.Expect(measured(t, ask(v1alpha1.Request{Verb: "GET", Object: &child}))).To(HaveLen(1))
	g.Expect(measured(t, between)).To(Equal([]v1alpha1.Figure{one(v1alpha1.OrphanDelete, 0, 0.88)}))
}

func TestMeasure_ForegroundLevels(t *testing.T) {
	var s scene
	for _, name := range []string{"owner", "lonely"} {
		s.see(0, "ADDED", name)
	}
	s.see(0, "ADDED", "child", ownedBy("owner"))
	s.see(0, "ADDED", "grandchild", ownedBy("child"))
	s.see(10, "MODIFIED", "owner", leaving(foreground))
	s.see(20, "MODIFIED", "child", leaving(foreground), ownedBy("owner"))
	s.see(30, "DELETED", "grandchild", ownedBy("child"))
	s.see(50, "DELETED", "child", leaving(), ownedBy("owner"))
	s.see(70, "DELETED", "owner", leaving())
	s.see(80, "MODIFIED", "lonely", leaving(foreground))
	s.see(85, "DELETED", "lonely", leaving())
	NewWithT(t).Expect(measured(t, s)).To(Equal([]v1alpha1.Figure{
		one(v1alpha1.ForegroundDelete, 0, 0.005), one(v1alpha1.ForegroundDelete, 1, 0.03), one(v1alpha1.ForegroundDelete, 2, 0.06),
	}))
}

func TestMeasure_ForegroundCircle(t *testing.T) {
	var s scene
	s.see(0, "ADDED", "a", ownedBy("b"))
	s.see(0, "ADDED", "b", ownedBy("a"))
	s.see(10, "MODIFIED", "a", leaving(foreground), ownedBy("b"))
	s.see(30, "DELETED", "b", ownedBy("a"))
	s.see(40, "DELETED", "a", leaving(), ownedBy("b"))
	NewWithT(t).Expect(measured(t, s)).To(ContainElement(one(v1alpha1.ForegroundDelete, 1, 0.03)))
}

func TestMeasure_Orphan(t *testing.T) {
	var s scene
	s.see(0, "ADDED", "owner")
	s.see(0, "ADDED", "child", ownedBy("owner"))
	s.see(10, "MODIFIED", "owner", leaving(orphan, framework.Hold))
	s.see(25, "MODIFIED", "child")
	s.see(40, "MODIFIED", "owner", leaving(framework.Hold))
	s.see(9000, "DELETED", "owner", leaving())
	NewWithT(t).Expect(measured(t, s)).To(Equal([]v1alpha1.Figure{one(v1alpha1.OrphanRelease, 0, 0.015), one(v1alpha1.OrphanDelete, 0, 0.03)}))
}

func TestMeasure_Namespaces(t *testing.T) {
	empty := func(content ...detail) scene {
		var s scene
		s.see(0, "ADDED", "ns", kind("Namespace"))
		s.see(1, "ADDED", "thing")
		s.see(10, "MODIFIED", "ns", kind("Namespace"), leaving())
		s.see(11, "MODIFIED", "thing", content...)
		s.see(900, "DELETED", "thing")
		s.see(2010, "DELETED", "ns", kind("Namespace"), leaving())
		return s
	}
	g := NewWithT(t)
	g.Expect(measured(t, empty(leaving()))).To(Equal([]v1alpha1.Figure{one(v1alpha1.NamespaceDelete, 0, 2)}))
	g.Expect(measured(t, empty(leaving(framework.Hold)))).To(BeEmpty())
}

func TestMeasure_Quantiles(t *testing.T) {
	var s scene
	s.see(0, "ADDED", "owner")
	s.see(0, "DELETED", "owner")
	for ms := range 200 {
		name := "child-" + time.Duration(ms).String()
		s.see(0, "ADDED", name, ownedBy("owner"))
		s.see(200-ms, "DELETED", name, ownedBy("owner"))
	}
	NewWithT(t).Expect(measured(t, s)).To(Equal([]v1alpha1.Figure{
		{Operation: v1alpha1.BackgroundDelete, Count: 200, P50: 0.1, P90: 0.18, P99: 0.198, Max: 0.2, PerSecond: 1000},
	}))
}

func TestMeasure_ReadReport(t *testing.T) {
	kept := []v1alpha1.Figure{one(v1alpha1.NamespaceDelete, 0, 7)}
	result := reporttest.Ran("cascade.x", "x", v1alpha1.Passed)
	r := v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Name: "a", Figures: kept, Results: []v1alpha1.Result{result}}}}
	NewWithT(t).Expect(figures.Measure(r).Clusters[0].Figures).To(Equal(kept))
}

// releasedOf returns the figures of a cluster on which a resource replaced ConfigMaps.
func releasedOf(resource string, scenes ...scene) []v1alpha1.Figure {
	cluster := v1alpha1.Cluster{Name: "a", Resource: resource}
	for _, s := range scenes {
		result := reporttest.Ran("cascade.x", "x", v1alpha1.Passed)
		result.Timeline = s.Timeline
		cluster.Results = append(cluster.Results, result)
	}
	return figures.Measure(v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster}}).Clusters[0].Figures
}

func TestMeasure_ForeignFinalizers(t *testing.T) {
	g := NewWithT(t)
	const cleanup, backup = "example.com/cleanup", "example.com/backup"
	one, two := scene{}, scene{}
	one.see(0, "ADDED", "volume")
	one.see(100, "MODIFIED", "volume", leaving(cleanup, backup, framework.Hold, foreground))
	one.see(300, "MODIFIED", "volume", leaving(backup, framework.Hold))
	one.see(900, "DELETED", "volume", leaving())
	one.see(950, "ADDED", "left")
	one.see(960, "MODIFIED", "left", leaving(cleanup))
	two.see(0, "ADDED", "disk", leaving(cleanup))
	two.see(4000, "MODIFIED", "disk", leaving(framework.Hold))

	g.Expect(releasedOf("volumes.example.com", one, two)).To(ConsistOf(
		v1alpha1.Figure{Operation: v1alpha1.FinalizerRelease, Finalizer: backup, Count: 1, P50: 0.8, P90: 0.8, P99: 0.8, Max: 0.8},
		v1alpha1.Figure{Operation: v1alpha1.FinalizerRelease, Finalizer: cleanup, Count: 2, P50: 0.2, P90: 4, P99: 4, Max: 4},
	), "those of the harness and of the collector are not others', and what was not removed has no end")
	g.Expect(releasedOf("", one, two)).To(BeEmpty(), "of Kubernetes' own kinds the behaviors say what holds them, which may be the harness")
	g.Expect(figures.Name(v1alpha1.Figure{Operation: v1alpha1.FinalizerRelease, Finalizer: cleanup})).To(
		Equal("Finalizer example.com/cleanup: terminating to removed"))
}
