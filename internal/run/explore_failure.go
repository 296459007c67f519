package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// messageOf describes what a failure shows, which rule that breaks, how small it is and how to run it again.
func messageOf(failure exploration.Failure, command string) string {
	operations, clients := failure.Operations()
	lines := []string{failure.Message}
	if failure.Property.Upstream {
		lines = append(lines, "Kubernetes itself shows this deviation: docs/explore.md#what-upstream-shows")
	}
	lines = append(lines, "rule: "+failure.Rule.Text)
	if failure.Rule.Promise != "" {
		lines = append(lines, fmt.Sprintf("promise: %q (%s)", failure.Rule.Promise, failure.Rule.Source))
	}
	if failure.Name != "" {
		lines = append(lines, "object: "+failure.Name)
	}
	lines = append(lines, faultsOf(failure)...)
	smaller := "not reduced"
	if failure.Attempts > 0 {
		smaller = fmt.Sprintf("after %d attempts to reduce it", failure.Attempts)
	}
	return strings.Join(append(lines, fmt.Sprintf("history: %d operations of %d clients, %s, seed %d", operations, clients, smaller, failure.Seed),
		"replay: "+command), "\n")
}

// faultsOf are lines about the injected faults in the history of a failure, each with its first effect: those without which it did not happen again,
// and others.
func faultsOf(failure exploration.Failure) []string {
	var names, needed, others []string
	for _, fault := range failure.History.Faults {
		if slices.Contains(names, fault.Name) {
			continue
		}
		names = append(names, fault.Name)
		if text := fmt.Sprintf("%s (%s)", fault.Name, fault.Effect); slices.Contains(failure.Needed, fault.Name) {
			needed = append(needed, text)
		} else {
			others = append(others, text)
		}
	}
	var lines []string
	if len(needed) > 0 {
		lines = append(lines, "does not happen without the injected faults: "+strings.Join(needed, ", "))
	}
	if len(others) > 0 {
		lines = append(lines, "injected faults that may matter: "+strings.Join(others, ", "))
	}
	return lines
}

// timelineOf is what the history of a failure shows of its object: the requests, and the events of the stream that it is about, or of
// the one that shows everything.
func timelineOf(failure exploration.Failure, like v1alpha1.ObjectReference) v1alpha1.Timeline {
	recorded, timeline := failure.History, v1alpha1.Timeline{}
	reference := func(name, uid string) *v1alpha1.ObjectReference {
		about := like
		if kind, child, ok := strings.Cut(name, "/"); ok && recorded.Operated != nil {
			about, name = v1alpha1.ObjectReference{Kind: kind, Namespace: like.Namespace}, child
		} else if recorded.IsNamespace(name) {
			about = v1alpha1.ObjectReference{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
		} else if home := recorded.Homes[name]; home != "" {
			about.Namespace = home
		} else if owner := recorded.ClusterOwner; owner != nil && owner.Name == name {
			about = v1alpha1.ObjectReference{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Resource: "clusterroles"}
		}
		if kind, bare, ok := strings.Cut(name, "/"); ok && len(recorded.Workloads) > 0 {
			about.Group, about.Kind, about.Resource, name = groups[kind], kind, strings.ToLower(kind)+"s", bare
		}
		about.Name, about.UID = name, types.UID(uid)
		return &about
	}
	for i, request := range recorded.Requests {
		if failure.Name != "" && request.Name != "" && !recorded.Concerns(failure.Name, request.Name) {
			continue
		}
		shown := requestOf(recorded.Began, request, reference)
		if i == failure.Request {
			shown.Refusal = strings.TrimSpace(shown.Refusal + " <-- no order explains this response")
		}
		timeline.Requests = append(timeline.Requests, shown)
	}
	for _, event := range eventsOf(failure) {
		if event.Type != history.Bookmark && (failure.Name == "" || recorded.Concerns(failure.Name, event.Name)) {
			timeline.Events = append(timeline.Events, observationOf(recorded.Began, event, reference))
		}
	}
	for _, fault := range recorded.Faults {
		timeline.Events = append(timeline.Events, v1alpha1.Observation{
			At: recorded.Began.Add(fault.At), Type: "INJECTED", Changes: []string{fault.Effect},
			ObjectReference: v1alpha1.ObjectReference{Kind: "Fault", Name: fault.Name, UID: types.UID(fault.Name)},
		})
	}
	return timeline
}

// groups are the API groups of workloads, and of what belongs to them; others are in the core group.
var groups = map[string]string{
	"ControllerRevision": appsv1.GroupName, "DaemonSet": appsv1.GroupName, "Deployment": appsv1.GroupName, "ReplicaSet": appsv1.GroupName,
	"StatefulSet": appsv1.GroupName, "Job": batchv1.GroupName, "EndpointSlice": discoveryv1.GroupName,
}

// eventsOf are the events of the stream that a failure is about, or of the watch that shows everything, and those of namespaces and children.
func eventsOf(failure exploration.Failure) []history.Event {
	recorded := failure.History
	events := slices.Concat(recorded.Namespaces, recorded.Workloads)
	for i, stream := range recorded.Streams {
		if failure.Stream == i || failure.Stream < 0 && stream.ID == recorded.Streams[0].ID {
			events = append(events, stream.Events...)
		}
	}
	if operated := recorded.Operated; operated != nil {
		for _, child := range operated.Children {
			events = append(events, child.Event)
		}
		slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	}
	return events
}

// explored names the resource that a scenario explores on a cluster.
func (c *clusterRun) explored(scenario *exploration.Scenario) v1alpha1.ObjectReference {
	like := v1alpha1.ObjectReference{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: c.environment.Session(1).Namespace}
	switch {
	case scenario.Pods:
		like.Kind, like.Resource = "Pod", "pods"
	case c.object != nil:
		kind := c.object.GroupVersionKind()
		like.Group, like.Version, like.Kind, like.Resource = kind.Group, kind.Version, kind.Kind, c.resource
	}
	return like
}

// methods are the HTTP methods of verbs.
var methods = map[model.Verb]string{
	model.Get: http.MethodGet, model.Select: http.MethodGet, model.Create: http.MethodPost, model.Update: http.MethodPut,
	model.UpdateStatus: http.MethodPut, model.Patch: http.MethodPatch, model.Apply: http.MethodPatch, model.Delete: http.MethodDelete,
}

func requestOf(began time.Time, request history.Request, reference func(name, uid string) *v1alpha1.ObjectReference) v1alpha1.Request {
	uid := ""
	if request.Outcome.Object != nil {
		uid = request.Outcome.Object.UID
	}
	sent, _ := json.Marshal(request.Operation) // of strings
	sender := "the run"
	if request.Client > 0 {
		sender = fmt.Sprintf("client %d", request.Client)
	}
	shown := v1alpha1.Request{
		At: began.Add(request.Call), Verb: methods[request.Operation.Verb], Object: reference(request.Name, uid), Body: string(sent),
		Path:   fmt.Sprintf("%s: %s %s", sender, request.Operation.Verb, cmp.Or(request.Name, "the collection")),
		Status: request.Outcome.Code, Latency: request.Return - request.Call,
	}
	if request.Outcome.Lost() {
		shown.Error = "the response was lost"
	}
	if request.Outcome.Object != nil {
		shown.Path += " (response: " + request.Outcome.Object.String() + ")"
	}
	return shown
}

func observationOf(began time.Time, event history.Event, reference func(name, uid string) *v1alpha1.ObjectReference) v1alpha1.Observation {
	observation := v1alpha1.Observation{
		At: began.Add(event.At), Type: event.Type, ObjectReference: *reference(event.Name, event.Object.UID),
		ResourceVersion: event.Object.ResourceVersion, Finalizers: event.Object.Finalizers.List(),
	}
	if event.Object.Terminating {
		observation.DeletionTimestamp = new(metav1.NewTime(began.Add(event.At)))
	}
	for _, owner := range model.OwnersOf(event.Object.Owners) {
		observation.Owners = append(observation.Owners, metav1.OwnerReference{
			Name: owner.Name, UID: types.UID(owner.UID), BlockOwnerDeletion: &owner.Blocks,
		})
	}
	return observation
}
