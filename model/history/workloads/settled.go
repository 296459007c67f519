package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Kinds of objects that have rules.
const (
	pod                   = "Pod"
	replicationController = "ReplicationController"
	replicaSet            = "ReplicaSet"
	deployment            = "Deployment"
	statefulSet           = "StatefulSet"
	daemonSet             = "DaemonSet"
	job                   = "Job"
	service               = "Service"
	endpointSlice         = "EndpointSlice"
	claim                 = "PersistentVolumeClaim"
	budget                = "PodDisruptionBudget"
	namespace             = "Namespace"
)

// tracking is the finalizer by which the Job controller counts pods.
const tracking = "batch.kubernetes.io/job-tracking"

// Live are the objects that exist after some events, by name.
func Live(events []history.Event) State {
	live := State{}
	for _, event := range events {
		live.Apply(event)
	}
	return live
}

// State are the objects that exist at a moment, by name, as the last event of each shows them. A namespace stays after its removal, because
// nothing may exist in it then.
type State map[string]history.Event

// Apply changes the state by an event.
func (s State) Apply(event history.Event) {
	if event.Type == history.Deleted && event.Workload.Kind != namespace {
		delete(s, event.Name)
	} else {
		s[event.Name] = event
	}
}

// choose returns the objects of a kind that match, by name.
func (s State) choose(kind string, matches func(history.Event) bool) []history.Event {
	var chosen []history.Event
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name].Workload.Kind == kind && matches(s[name]) {
			chosen = append(chosen, s[name])
		}
	}
	return chosen
}

// isActive reports whether a pod counts for its workload.
func isActive(event history.Event) bool {
	return event.Workload.Kind == pod && !event.Object.Terminating && !event.Workload.Finished
}

// activeOf are the pods that count for a workload.
func (s State) activeOf(uid string) []history.Event {
	return s.choose(pod, func(event history.Event) bool { return event.Workload.Controller == uid && isActive(event) })
}

func (s State) exists(uid string) bool {
	for _, event := range s {
		if event.Object.UID == uid {
			return true
		}
	}
	return false
}

// Content are the names of the objects that exist, except for their namespace.
func (s State) Content() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(name string) bool { return s[name].Workload.Kind == namespace })
}

// Unsettled returns what controllers must still do, as violations of the properties of a quiet moment.
func (s State) Unsettled() []history.Violation {
	var violations []history.Violation
	ends := func(event history.Event) bool { return event.Object.Terminating || event.Type == history.Deleted }
	if homes := s.choose(namespace, ends); len(homes) > 0 {
		return s.checkTermination(homes[0])
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		object := s[name]
		found := func(property *history.Property, format string, values ...any) {
			violations = append(violations, broken(property, name, "%s "+format, slices.Concat([]any{name}, values)...))
		}
		owners := model.OwnersOf(object.Object.Owners)
		isOwned := slices.ContainsFunc(owners, func(owner model.Owner) bool { return s.exists(owner.UID) })
		switch {
		case len(owners) > 0 && !isOwned && !object.Object.Terminating:
			found(Collected, "still exists, but none of its owners does: %s", object.Object)
		case object.Object.Finalizers.Has(tracking) && s.isUntracked(object):
			found(Tracked, "still has the finalizer %s, and no Job counts it: %s", tracking, object.Object)
		case object.Object.Terminating:
			if !s.isInUse(object) && !s.waitsForClaim(object) {
				found(Completed, "is still terminating: %s", object.Object)
			}
		default:
			s.checkWorkload(object, found)
		}
	}
	return violations
}

// checkTermination checks that nothing is left of a namespace that was deleted.
func (s State) checkTermination(home history.Event) []history.Violation {
	var violations []history.Violation
	for _, name := range s.Content() {
		violations = append(violations, broken(Emptied, name, "%s still exists, but its namespace was deleted: %s", name, s[name].Object))
	}
	if len(violations) == 0 && home.Type != history.Deleted {
		violations = append(violations, broken(Completed, home.Name, "%s is still terminating, but nothing is left in it: %s", home.Name, home.Object))
	}
	return violations
}

// isUntracked reports whether the Job controller has no reason to keep its finalizer on a pod.
func (s State) isUntracked(object history.Event) bool {
	return object.Workload.Finished || len(s.choose(job, func(event history.Event) bool { return event.Object.UID == object.Workload.Controller })) == 0
}

// isInUse reports whether an object is a claim of a pod that exists, which protects it.
func (s State) isInUse(object history.Event) bool {
	_, name, _ := strings.Cut(object.Name, "-") // data-NAME-ORDINAL
	_, used := s[pod+"/"+name]
	return object.Workload.Kind == claim && used
}

// waitsForClaim reports whether an object in foreground deletion waits for a claim that a pod uses.
func (s State) waitsForClaim(object history.Event) bool {
	return object.Object.Finalizers.Has(model.Foreground) && len(s.choose(claim, func(event history.Event) bool {
		isBlocking := func(owner model.Owner) bool { return owner.UID == object.Object.UID && owner.Blocks }
		return s.isInUse(event) && slices.ContainsFunc(model.OwnersOf(event.Object.Owners), isBlocking)
	})) > 0
}

// checkWorkload checks that a workload or Service has what it requires.
func (s State) checkWorkload(object history.Event, found func(property *history.Property, format string, values ...any)) {
	required, active := object.Workload.Replicas, s.activeOf(object.Object.UID)
	switch object.Workload.Kind {
	case replicationController, replicaSet, daemonSet, job:
		if int64(len(active)) != required {
			found(Replicas, "requires %d pods, and has %s", required, list(active))
		}
	case statefulSet:
		s.checkOrdinals(object, active, found)
	case deployment:
		s.checkRevisions(object, found)
	case service:
		s.checkEndpoints(object, found)
	case budget:
		s.checkBudget(object, found)
	}
	if object.Workload.Kind == statefulSet || object.Workload.Kind == daemonSet {
		old := slices.DeleteFunc(active, func(event history.Event) bool { return event.Workload.Template == object.Workload.Template })
		if len(old) > 0 {
			found(Rollout, "has the template %s, and %s an earlier one", object.Workload.Template, list(old))
		}
	}
}

// checkOrdinals checks the pods of a StatefulSet, unless another object has a name that it needs.
func (s State) checkOrdinals(set history.Event, active []history.Event, found func(property *history.Property, format string, values ...any)) {
	var missing []string
	for ordinal := range set.Workload.Replicas {
		name := fmt.Sprintf("%s/%s-%d", pod, bare(set.Name), ordinal)
		if other, taken := s[name]; taken && other.Workload.Controller != set.Object.UID {
			return
		} else if !taken || !isActive(other) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 || int64(len(active)) != set.Workload.Replicas {
		found(Replicas, "requires %d pods, and has %s", set.Workload.Replicas, list(active))
	}
}

// checkRevisions checks the ReplicaSets of a Deployment. Their pods are checked like those of others.
func (s State) checkRevisions(object history.Event, found func(property *history.Property, format string, values ...any)) {
	current := int64(0)
	for _, set := range s.choose(replicaSet, func(event history.Event) bool { return event.Workload.Controller == object.Object.UID }) {
		switch isCurrent := set.Workload.Template == object.Workload.Template; {
		case isCurrent && !set.Object.Terminating:
			current += set.Workload.Replicas
		case set.Workload.Replicas > 0:
			found(Rollout, "has the template %s, and %s of template %s still requires %d pods", object.Workload.Template, set.Name,
				set.Workload.Template, set.Workload.Replicas)
		}
	}
	if current != object.Workload.Replicas {
		found(Replicas, "requires %d pods, and its current ReplicaSet %d", object.Workload.Replicas, current)
	}
}

// checkEndpoints compares the EndpointSlices of a Service with the pods that it selects.
func (s State) checkEndpoints(object history.Event, found func(property *history.Property, format string, values ...any)) {
	var shown, serving model.Names
	for _, slice := range s.choose(endpointSlice, func(event history.Event) bool { return event.Workload.Group == bare(object.Name) }) {
		shown = shown.With(slice.Workload.Endpoints.List()...)
	}
	for _, ready := range s.choose(pod, func(event history.Event) bool {
		return event.Workload.Group == object.Workload.Group && event.Workload.Ready && isActive(event)
	}) {
		serving = serving.With(ready.Object.UID)
	}
	if shown != serving {
		found(Endpoints, "selects the ready pods with uid %q, and its EndpointSlices show %q", serving, shown)
	}
}

// bare is the name of an object without its kind.
func bare(name string) string { return name[strings.Index(name, "/")+1:] }

// list names objects in messages.
func list(objects []history.Event) string {
	names := []string{}
	for _, object := range objects {
		names = append(names, object.Name)
	}
	return fmt.Sprintf("%d (%s)", len(objects), strings.Join(names, ", "))
}
