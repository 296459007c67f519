package workloads

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	checks "github.com/deletion-conformance/deletion-conformance/model/history/workloads"
)

// onStage is a round with an object of each kind.
func onStage() *stage {
	round := &clients.Round{Number: 7, Labels: map[string]string{client.RunLabel: "dc1"}, Manifest: &client.Object{Object: map[string]any{}}}
	for i := range objects {
		round.Names = append(round.Names, fmt.Sprint("r7-", i))
	}
	return &stage{Round: round, kinds: kinds, node: "n"}
}

func TestPrepared(t *testing.T) {
	s := onStage()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			g, object := NewWithT(t), k.prepared("r7-x", s, "5")
			g.Expect(object.GetLabels()).To(HaveKeyWithValue(watching.RoundLabel, "7"), "watches select it")
			if k.template == nil {
				return
			}
			pod, _, _ := unstructured.NestedMap(object.Object, k.template...)
			made := &client.Object{Object: pod}
			g.Expect(made.GetLabels()).To(And(HaveKeyWithValue(watching.RoundLabel, "7"), HaveKeyWithValue(watching.GroupLabel, "r7-x")))
			g.Expect(made.GetAnnotations()).To(HaveKeyWithValue(watching.TemplateAnnotation, "5"))
			node, _, _ := unstructured.NestedString(pod, "spec", "nodeName")
			g.Expect(node).To(Equal("n"), "its termination must be confirmed")
			claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
			for _, claim := range claims {
				g.Expect((&client.Object{Object: claim.(map[string]any)}).GetLabels()).To(HaveKeyWithValue(watching.RoundLabel, "7"))
			}
		})
	}
}

func TestPrepared_Selector(t *testing.T) {
	g, s := NewWithT(t), onStage()
	for i, k := range kinds {
		if k.selects == nil {
			continue
		}
		selector, _, _ := unstructured.NestedStringMap(k.prepared(s.Names[i], s, "").Object, k.selects...)
		g.Expect(selector).To(Equal(map[string]string{watching.GroupLabel: s.Names[i+1]}), "it selects the pods of the next workload")
	}
}

func TestDraw(t *testing.T) {
	g, drawn := NewWithT(t), map[string]int{}
	for _, program := range generate.Programs(1, generate.Options{Clients: 4, Operations: 2000, Objects: objects, GarbageCollector: true, Draw: draw}) {
		for _, i := range program {
			kind := string(i.Verb) + " " + i.Step
			switch {
			case i.Namespace:
				kind += "the namespace"
			case i.Part > 0:
				kind += " of a pod"
			case i.Verb == model.Delete:
				kind += " " + i.Policy
				g.Expect(i.UID).To(BeTrue(), "it must be known which objects clients deleted")
			}
			drawn[kind]++
			g.Expect(i.Pause).To(BeNumerically("<", longestPause))
		}
	}
	for _, kind := range []string{
		"create ", "delete  Orphan", "delete  Foreground", "delete create again Orphan", "delete create again ", "patch scale", "patch new template", "patch ",
		"delete  of a pod", "update status succeed of a pod", "update status fail of a pod", "patch take of a pod", "patch give of a pod",
		"delete evict of a pod", "update status due", "delete the namespace",
	} {
		g.Expect(drawn[kind]).To(BeNumerically(">", 20), kind)
	}
}

func TestStateOf(t *testing.T) {
	now := time.Now()
	pod := func(phase corev1.PodPhase, grace *int64, since time.Duration) corev1.Pod {
		made := corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		if grace != nil {
			made.DeletionTimestamp, made.DeletionGracePeriodSeconds = new(metav1.NewTime(now.Add(-since))), grace
		}
		return made
	}
	isReady := pod(corev1.PodRunning, nil, 0)
	isReady.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, test := range map[string]struct {
		pod   corev1.Pod
		state string
	}{
		"created":                              {pod(corev1.PodPending, nil, 0), isPending},
		"running":                              {pod(corev1.PodRunning, nil, 0), isNotReady},
		"ready":                                {isReady, ""},
		"ended":                                {pod(corev1.PodSucceeded, nil, 0), ""},
		"terminating":                          {pod(corev1.PodRunning, new(int64(30)), 0), terminates},
		"terminating before it runs":           {pod(corev1.PodPending, new(int64(1)), time.Hour), terminates},
		"removed by the API server":            {pod(corev1.PodRunning, new(int64(0)), leftOver/2), ""},
		"left over when a client went away":    {pod(corev1.PodRunning, new(int64(0)), leftOver+time.Second), isLeftOver},
		"left over, and ended at the deletion": {pod(corev1.PodFailed, new(int64(0)), leftOver+time.Second), isLeftOver},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(stateOf(test.pod, now)).To(Equal(test.state))
		})
	}
}

func TestLastPrograms(t *testing.T) {
	g, s := NewWithT(t), onStage()
	canaries, renewals, deletes := s.lastPrograms()
	g.Expect(canaries).To(HaveLen(len(kinds)))
	g.Expect(deletes).To(HaveLen(len(kinds)))
	changed := map[string]bool{}
	for _, change := range renewals {
		changed[s.kindOf(change.Object).name] = true
		k, created := s.kindOf(change.Object), canaries[change.Object-objects]
		g.Expect(created.Object).To(Equal(change.Object))
		if k.name == budget {
			g.Expect(change.Replicas).NotTo(Equal(created.Replicas), "it has another specification then")
		} else {
			g.Expect(k.mutable).To(BeTrue())
			g.Expect(change.Change).NotTo(Equal(created.Change), "it has another template then")
		}
	}
	g.Expect(slices.Sorted(maps.Keys(changed))).To(Equal([]string{"DaemonSet", "Deployment", budget, "StatefulSet"}))
}

func TestLastSteps(t *testing.T) {
	g, s := NewWithT(t), onStage()
	deletes := generate.Program{{Verb: model.Delete, Object: objects}}
	changes := lastChanges(s.Number)

	g.Expect(s.lastSteps(deletes, false)).To(Equal([][]generate.Program{s.evictions(), {slices.Concat(changes, deletes)}}))
	refusing := s.lastSteps(deletes, true)
	g.Expect(refusing).To(HaveLen(3), "changes are handled before deletes are refused")
	g.Expect(refusing[1]).To(Equal([]generate.Program{changes}))
	g.Expect(refusing[2]).To(Equal([]generate.Program{{{Fault: injection.Refuse, Step: injection.EachKind}, deletes[0]}}))

	s.own = &client.Object{}
	g.Expect(s.lastSteps(deletes, false)[1]).To(Equal([]generate.Program{{{Verb: model.Delete, Namespace: true}}}))
}

func TestAreDeleted(t *testing.T) {
	s := onStage()
	for range kinds {
		s.Names = append(s.Names, fmt.Sprint("r7-", len(s.Names)))
	}
	const namespace = "Namespace/r7"
	last := s.kindOf(objects).name + "/" + s.Names[objects]
	event := func(kind string, terminating bool) history.Event {
		return history.Event{Type: kind, Object: model.Object{Terminating: terminating}}
	}
	for name, test := range map[string]struct {
		home  string
		state checks.State
		want  bool
	}{
		"a last workload exists":        {"", checks.State{last: event(history.Added, false)}, false},
		"one is terminating":            {"", checks.State{last: event(history.Modified, true)}, true},
		"all are gone":                  {"", checks.State{s.kindOf(0).name + "/" + s.Names[0]: event(history.Added, false)}, true},
		"the namespace exists":          {"r7", checks.State{namespace: event(history.Modified, false)}, false},
		"the namespace is terminating":  {"r7", checks.State{namespace: event(history.Modified, true), last: event(history.Added, false)}, true},
		"the namespace has disappeared": {"r7", checks.State{namespace: event(history.Deleted, true)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s.own, s.home = nil, test.home
			if test.home != "" {
				s.own = &client.Object{}
			}
			NewWithT(t).Expect(s.areDeleted(test.state)).To(Equal(test.want))
		})
	}
}
