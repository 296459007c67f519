// Package workloads explores what the controllers of Kubernetes do: the scenario, with the operations of its clients, and what happens before and after
// them.
package workloads

import (
	"context"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	checks "github.com/deletion-conformance/deletion-conformance/model/history/workloads"
)

// objects is the number of workloads and Services of a round, and operations that of a client's operations.
const (
	objects    = 18
	operations = 24
)

// Scenario is about workloads, Services and PodDisruptionBudgets, what their controllers create for them, and the end of their namespace.
var Scenario = &exploration.Scenario{
	Name: "workloads", Topic: "(controllers and their pods)", Properties: checks.Properties,
	Help:     "In scenario\nworkloads clients create, scale, change and delete workloads, Services, budgets and pods, use names again at once, and delete namespaces.",
	Features: []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM}, Optional: []v1alpha1.Feature{v1alpha1.SimulatedNode}, About: "workloads",
	Objects: objects, Barrier: len(kinds), Operations: operations,
	Draw: draw, Begin: begin, Act: act, Settle: settle, Check: checks.Check,
}

// Steps of operations.
const (
	again    = "create again"
	scale    = "scale"
	template = "new template"
	succeed  = "succeed"
	fail     = "fail"
	take     = "take"
	give     = "give"
	evict    = "evict"
	due      = "due"
)

type (
	drawer = generate.Drawer
	intent = generate.Intent
)

// choices are the operations on workloads. Every delete requires a uid, so that it is known which objects clients deleted.
var choices = []generate.Choice{
	{Weight: 30, Draw: func(d *drawer, i *intent) {
		create(d, i)
		if d.OneIn(8) {
			i.Change.Finalizers = new(model.NamesOf(clients.HeldBy))
		}
	}},
	{Weight: 14, Draw: func(d *drawer, i *intent) {
		create(d, i)
		i.Verb, i.Step, i.UID, i.Policy = model.Delete, again, true, policy(d)
	}},
	{Weight: 12, Draw: func(d *drawer, i *intent) { i.Verb, i.UID, i.Policy = model.Delete, true, policy(d) }},
	{Weight: 14, Draw: func(d *drawer, i *intent) { i.Verb, i.Step, i.Replicas = model.Patch, scale, new(int64(d.IntN(5))) }},
	{Weight: 12, Draw: func(d *drawer, i *intent) { i.Verb, i.Step, i.Change.Value = model.Patch, template, d.Value() }},
	{Weight: 8, Draw: func(d *drawer, i *intent) {
		i.Verb, i.UID, i.Part, i.Grace = model.Delete, true, 1+d.IntN(4), generate.One(d, nil, nil, new(int64(0)))
	}},
	{Weight: 10, Draw: func(d *drawer, i *intent) {
		i.Verb, i.UID, i.Step, i.Part = model.Delete, true, evict, 1+d.IntN(4)
		if !d.OneIn(3) {
			i.Object = firstBudget
		}
	}},
	{Weight: 5, Draw: func(_ *drawer, i *intent) { i.Verb, i.Step = model.UpdateStatus, due }},
	{Weight: 8, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Step, i.Part = model.UpdateStatus, generate.One(d, succeed, succeed, fail), 1+d.IntN(4)
	}},
	{Weight: 6, Draw: func(d *drawer, i *intent) { i.Verb, i.Step, i.Part = model.Patch, take, 1+d.IntN(4) }},
	{Weight: 6, Draw: func(d *drawer, i *intent) { i.Verb, i.Step, i.Part = model.Patch, give, 1+d.IntN(4) }},
	{Weight: 8, Draw: func(_ *drawer, i *intent) { i.Verb, i.Release = model.Patch, true }},
	{Weight: 1, Draw: func(_ *drawer, i *intent) { i.Verb, i.Namespace = model.Delete, true }},
}

func create(d *drawer, i *intent) {
	i.Verb, i.Change, i.Replicas = model.Create, model.Change{Value: d.Value()}, new(int64(d.IntN(4)))
}

// policy draws a propagation policy. More than one delete in three orphans, as orphans meet the most controllers.
func policy(d *drawer) string {
	if d.OneIn(4) {
		return model.PolicyOrphan
	}
	return d.Policy()
}

// longestPause limits the pauses between operations, in which controllers act.
const longestPause = 200 * time.Millisecond

// draw draws an operation. Half of them follow the one before at once.
func draw(d *drawer, _ generate.Program) intent {
	drawn := d.Choose(choices)
	if d.OneIn(2) {
		drawn.Pause = time.Duration(d.Int64N(int64(longestPause/time.Millisecond))) * time.Millisecond
	}
	return drawn
}

// act carries out an intent.
func act(ctx context.Context, a *clients.Actor, i intent) error {
	s := a.State.(*stage)
	if i.Object < 0 {
		return clients.Do(ctx, a, i) // no program that was drawn has it
	}
	name, k := a.Names[i.Object], s.kindOf(i.Object)
	switch {
	case i.Namespace:
		return s.deleteHome(ctx, a)
	case i.Part > 0:
		return s.actOnPod(ctx, a, i)
	case i.Verb == model.Create:
		return a.Send(ctx, s.creation(k, name, i))
	case i.Verb == model.Delete:
		if err := a.Send(ctx, s.deletion(k, name, i)); err != nil || i.Step != again {
			return err
		}
		return a.Send(ctx, s.creation(k, name, i))
	case i.Verb == model.Patch:
		request, ok := s.patch(k, name, i)
		if !ok {
			return nil
		}
		return a.Send(ctx, request)
	case i.Step == due && k.scheduled:
		object := s.bare(k, name)
		status := map[string]any{"status": map[string]any{"lastScheduleTime": longAgo}}
		return a.Send(ctx, clients.As(watching.KeyOf(object), object, model.Operation{Verb: i.Verb},
			client.Request{Method: http.MethodPatch, Subresource: "status", Body: status, ContentType: string(types.MergePatchType)}))
	}
	return a.Send(ctx, s.about(k, name, model.Operation{Verb: model.Get}))
}

// deleteHome deletes the namespace of the round. That of the run stays.
func (s *stage) deleteHome(ctx context.Context, a *clients.Actor) error {
	if s.own == nil {
		return nil
	}
	return a.Send(ctx, clients.About(watching.KeyOf(s.own), s.own, model.Operation{Verb: model.Delete}))
}

// longAgo is when the last Job of a CronJob was due, so that the next one is due now.
const longAgo = "2024-06-01T00:00:00Z"

// bare is an object of a kind that has only its name.
func (s *stage) bare(k kind, name string) *client.Object {
	object := k.manifest(name)
	object.SetNamespace(s.home)
	return object
}

// about is a get or a delete of an object.
func (s *stage) about(k kind, name string, operation model.Operation) clients.Request {
	object := s.bare(k, name)
	return clients.About(watching.KeyOf(object), object, operation)
}

func (s *stage) creation(k kind, name string, i intent) clients.Request {
	mark := ""
	if i.Change.Value != nil {
		mark = *i.Change.Value
	}
	object := k.prepared(name, s, mark)
	object.SetNamespace(s.home)
	if i.Replicas != nil && k.replicas != nil {
		setField(object, *i.Replicas, k.replicas...)
	}
	if i.Change.Finalizers != nil && *i.Change.Finalizers != "" {
		object.SetFinalizers([]string{watching.Prefix + clients.HeldBy})
	}
	return clients.As(watching.KeyOf(object), object, model.Operation{Verb: model.Create, Change: i.Change}, client.Request{Method: http.MethodPost, Body: object.Object})
}

// deletion deletes the object that a name has, as far as the watch has seen it; without one it is a get.
func (s *stage) deletion(k kind, name string, i intent) clients.Request {
	current := s.named(k, name)
	if current == nil {
		return s.about(k, name, model.Operation{Verb: model.Get})
	}
	return s.about(k, name, model.Operation{Verb: model.Delete, UID: string(current.GetUID()), Policy: i.Policy, Grace: i.Grace})
}

// patch changes an object. It is false for a kind that has nothing to change.
func (s *stage) patch(k kind, name string, i intent) (clients.Request, bool) {
	object, operation := s.bare(k, name), model.Operation{Verb: model.Patch, Change: i.Change}
	switch {
	case i.Release:
		return clients.As(watching.KeyOf(object), object, operation, clients.ReleaseRequest()), true
	case i.Step == scale && k.replicas != nil && i.Replicas != nil:
		return merge(object, operation, *i.Replicas, k.replicas...), true
	case i.Step == template && k.mutable && i.Change.Value != nil:
		return merge(object, operation, *i.Change.Value, append(slices.Clone(k.template), "metadata", "annotations", watching.TemplateAnnotation)...), true
	}
	return clients.Request{}, false
}

// merge sets one field of an object.
func merge(object *client.Object, operation model.Operation, value any, path ...string) clients.Request {
	body := &client.Object{Object: map[string]any{}}
	setField(body, value, path...)
	return clients.As(watching.KeyOf(object), object, operation,
		client.Request{Method: http.MethodPatch, Body: body.Object, ContentType: string(types.MergePatchType)})
}

// actOnPod carries out an intent about a pod of a workload, or about a free one; an eviction also about one that a PodDisruptionBudget selects. It does
// nothing if there is none.
func (s *stage) actOnPod(ctx context.Context, a *clients.Actor, i intent) error {
	k, name := s.kindOf(i.Object), a.Names[i.Object]
	if i.Step == evict && k.name == budget {
		name = s.grouped(name)
		k = s.kindOf(slices.Index(s.Names, name))
	}
	pod := s.choosePod(k, name, i)
	if pod == nil {
		return nil
	}
	operation := model.Operation{Verb: i.Verb, UID: string(pod.GetUID()), Grace: i.Grace}
	switch i.Step {
	case succeed:
		return a.Send(ctx, clients.SetStatus(pod, ended(corev1.PodSucceeded)))
	case fail:
		return a.Send(ctx, clients.SetStatus(pod, ended(corev1.PodFailed)))
	case take:
		return a.Send(ctx, merge(pod, operation, name+"-free", "metadata", "labels", watching.GroupLabel))
	case give:
		return a.Send(ctx, merge(pod, operation, name, "metadata", "labels", watching.GroupLabel))
	case evict:
		return a.Send(ctx, clients.Evict(pod))
	}
	return a.Send(ctx, clients.About(watching.KeyOf(pod), pod, operation))
}

// choosePod chooses the pod of a workload that an intent is about, or the free one that the workload is given; nil if there is none.
func (s *stage) choosePod(k kind, name string, i intent) *client.Object {
	owner := s.named(k, name)
	if owner == nil || (i.Step == take || i.Step == give) && !k.shares {
		return nil
	}
	ends := i.Step == succeed || i.Step == fail
	pods := s.live(func(object *client.Object) bool {
		switch isFree := metav1.GetControllerOf(object) == nil; {
		case object.GetKind() != "Pod", ends && (object.GetDeletionTimestamp() != nil || describe.Pod(object).Status.Phase != corev1.PodRunning):
			return false
		case i.Step == give:
			return isFree
		}
		return s.isControlledBy(object, string(owner.GetUID()))
	})
	if len(pods) == 0 {
		return nil
	}
	return pods[(i.Part-1)%len(pods)]
}
