package framework

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch: an object as it was at that moment. Events of one kind stand in the order in which
// the API server made them; between kinds the order is that of arrival, so only events of one kind are compared.
type Event struct {
	At     time.Time
	Type   watch.EventType
	Object *Object
}

// observation reduces an event to what reports show.
func (e Event) observation() v1alpha1.Observation {
	phase, _, _ := unstructured.NestedString(e.Object.Object, "status", "phase")
	return v1alpha1.Observation{
		At:                e.At,
		Type:              string(e.Type),
		ObjectReference:   referenceTo(e.Object),
		ResourceVersion:   e.Object.GetResourceVersion(),
		DeletionTimestamp: e.Object.GetDeletionTimestamp(),
		GraceSeconds:      e.Object.GetDeletionGracePeriodSeconds(),
		Finalizers:        e.Object.GetFinalizers(),
		Owners:            e.Object.GetOwnerReferences(),
		Phase:             phase,
		Containers:        containerStates(e.Object),
	}
}

// referenceTo names an object.
func referenceTo(object *Object) v1alpha1.ObjectReference {
	kind := object.GroupVersionKind()
	return v1alpha1.ObjectReference{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		Canary: object.GetLabels()[CanaryLabel] != "",
	}
}

// journal is where all watches of a session write, in order of arrival.
type journal struct {
	mu     sync.Mutex
	events []Event
	// broken says why events may be missing: a watch that could not be resumed.
	broken error
}

func (j *journal) add(event Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.broken = err
	}
}

// read returns the events that the condition wants; nil wants all.
func (j *journal) read(wanted func(Event) bool) ([]Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var events []Event
	for _, event := range j.events {
		if wanted == nil || wanted(event) {
			events = append(events, event)
		}
	}
	return events, j.broken
}

// forget drops what earlier specs left.
func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = nil
}

// History is a live view of what happened to some objects, told apart by uid. Matchers look at it whenever they are
// asked, so it goes with Expect as well as with Eventually.
type History struct {
	journal  *journal
	subjects []*Object
}

// Events returns what has happened to the subjects so far, oldest first. It fails when a watch was lost and could not
// be resumed, because something may be missing then.
func (h *History) Events() ([]Event, error) {
	return h.journal.read(func(event Event) bool {
		return slices.ContainsFunc(h.subjects, func(subject *Object) bool { return event.Object.GetUID() == subject.GetUID() })
	})
}

// String tells the history, one line an event, for the messages of matchers.
func (h *History) String() string {
	events, err := h.Events()
	if err != nil {
		return err.Error()
	}
	if len(events) == 0 {
		return "  (nothing happened)"
	}
	var lines []string
	for _, event := range events {
		lines = append(lines, fmt.Sprintf("  %8s  %-8s %s", event.At.Sub(events[0].At).Round(time.Millisecond), event.Type, describe(event.Object)))
	}
	return strings.Join(lines, "\n")
}

// describe tells what deletion is about of an object, in one line.
func describe(object *Object) string {
	parts := []string{title(object)}
	if at := object.GetDeletionTimestamp(); at != nil {
		parts = append(parts, "deletionTimestamp "+at.UTC().Format(time.TimeOnly))
	}
	if grace := object.GetDeletionGracePeriodSeconds(); grace != nil {
		parts = append(parts, fmt.Sprintf("grace %ds", *grace))
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		parts = append(parts, "finalizers "+strings.Join(finalizers, ", "))
	}
	for _, owner := range object.GetOwnerReferences() {
		parts = append(parts, "owned by "+describeReference(owner))
	}
	if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase != "" {
		parts = append(parts, "phase "+phase)
	}
	parts = append(parts, containerStates(object)...)
	parts = append(parts, endpointStates(object)...)
	return strings.Join(parts, "; ")
}

func describeReference(owner metav1.OwnerReference) string {
	blocking := ""
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		blocking = " (blocking)"
	}
	return fmt.Sprintf("%s %q%s", owner.Kind, owner.Name, blocking)
}

// Explain says of every object whose last event is not its end why it is still there.
func Explain(events []Event) []string {
	last := map[types.UID]*Object{}
	var order []types.UID
	for _, event := range events {
		uid := event.Object.GetUID()
		if _, seen := last[uid]; !seen {
			order = append(order, uid)
		}
		last[uid] = event.Object
		if event.Type == watch.Deleted {
			last[uid] = nil
		}
	}
	var explanation []string
	for _, uid := range order {
		if object := last[uid]; object != nil {
			explanation = append(explanation, fmt.Sprintf("%s is still there: %s", title(object), whyStill(object, last)))
		}
	}
	return explanation
}

// whyStill says what keeps one object, given the last state of all.
func whyStill(object *Object, living map[types.UID]*Object) string {
	if object.GetDeletionTimestamp() == nil {
		return "nobody has asked for its deletion" + ownersOf(object, living)
	}
	var reasons []string
	for _, finalizer := range object.GetFinalizers() {
		switch finalizer {
		case Hold:
			reasons = append(reasons, "the spec holds it ("+Hold+")")
		case metav1.FinalizerDeleteDependents:
			reasons = append(reasons, "it waits for its blocking dependents: "+blockersOf(object, living))
		case metav1.FinalizerOrphanDependents:
			reasons = append(reasons, "it waits for the collector to orphan its dependents")
		default:
			reasons = append(reasons, "finalizer "+finalizer+" is pending")
		}
	}
	if grace := object.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		reasons = append(reasons, fmt.Sprintf("its grace of %ds ends at %s and its node has not confirmed its end",
			*grace, object.GetDeletionTimestamp().UTC().Format(time.RFC3339)))
	}
	if len(reasons) == 0 {
		return "terminating, and nothing visible keeps it"
	}
	return "terminating; " + strings.Join(reasons, "; ")
}

func blockersOf(owner *Object, living map[types.UID]*Object) string {
	var names []string
	for _, object := range living {
		if object == nil {
			continue
		}
		for _, reference := range object.GetOwnerReferences() {
			if reference.UID == owner.GetUID() && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion {
				names = append(names, title(object))
			}
		}
	}
	if len(names) == 0 {
		return "none is left"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func ownersOf(object *Object, living map[types.UID]*Object) string {
	var owners []string
	for _, reference := range object.GetOwnerReferences() {
		state := "is gone"
		if living[reference.UID] != nil {
			state = "is still there"
		}
		owners = append(owners, fmt.Sprintf("its owner %s %s", describeReference(reference), state))
	}
	if len(owners) == 0 {
		return ""
	}
	return "; " + strings.Join(owners, "; ")
}
