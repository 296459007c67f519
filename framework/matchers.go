package framework

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// property is a matcher for one thing about an object.
type property struct {
	name string
	is   func(*Object) bool
}

func (p property) String() string { return p.name }

// GomegaString is how Gomega's own matchers show this one.
func (p property) GomegaString() string { return p.name }

// Match takes an object, or an answer that carries one.
func (p property) Match(actual any) (bool, error) {
	switch actual := actual.(type) {
	case *Object:
		return p.is(actual), nil
	case Answer:
		if actual.Err != nil {
			return false, actual.Err
		}
		return p.is(actual.Object), nil
	}
	return false, fmt.Errorf("%s is about an object or an answer, not %T", p.name, actual)
}

func (p property) FailureMessage(actual any) string {
	return fmt.Sprintf("Expected to %s:\n  %s", p.name, describeAny(actual))
}

func (p property) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("Expected not to %s:\n  %s", p.name, describeAny(actual))
}

// detail is a property that an object's description does not show.
type detail struct {
	property
	shown func(*Object) string
}

func (d detail) FailureMessage(actual any) string {
	object, is := actual.(*Object)
	if answer, carried := actual.(Answer); carried {
		object, is = answer.Object, answer.Object != nil
	}
	if !is {
		return d.property.FailureMessage(actual)
	}
	return d.property.FailureMessage(actual) + "; " + d.shown(object)
}

func describeAny(actual any) string {
	switch actual := actual.(type) {
	case *Object:
		return describe(actual)
	case Answer:
		if actual.Object != nil {
			return fmt.Sprintf("%s, answered %d: %s", actual.asked, actual.Status, describe(actual.Object))
		}
		return fmt.Sprintf("%s, answered %d", actual.asked, actual.Status)
	}
	return fmt.Sprint(actual)
}

// BeTerminating matches an object with a deletionTimestamp.
func BeTerminating() types.GomegaMatcher {
	return property{"be terminating", func(object *Object) bool { return object.GetDeletionTimestamp() != nil }}
}

// HaveFinalizer matches an object that carries a finalizer, among others maybe.
func HaveFinalizer(finalizer string) types.GomegaMatcher {
	return property{"have the finalizer " + finalizer, func(object *Object) bool {
		return slices.Contains(object.GetFinalizers(), finalizer)
	}}
}

// HaveFinalizers matches an object that carries exactly these finalizers, in any order.
func HaveFinalizers(finalizers ...string) types.GomegaMatcher {
	return property{fmt.Sprintf("have exactly the finalizers %q", finalizers), func(object *Object) bool {
		return sameSet(object.GetFinalizers(), finalizers)
	}}
}

// HaveGracePeriod matches an object whose deletionGracePeriodSeconds is this, in seconds.
func HaveGracePeriod(seconds int64) types.GomegaMatcher {
	return property{fmt.Sprintf("have deletionGracePeriodSeconds %d", seconds), func(object *Object) bool {
		grace := object.GetDeletionGracePeriodSeconds()
		return grace != nil && *grace == seconds
	}}
}

// HaveDeletionTimestamp matches an object whose deletionTimestamp is this moment.
func HaveDeletionTimestamp(moment *metav1.Time) types.GomegaMatcher {
	return property{"have the deletionTimestamp " + moment.UTC().Format(time.TimeOnly), func(object *Object) bool {
		return object.GetDeletionTimestamp().Equal(moment)
	}}
}

// HaveGeneration matches an object whose metadata.generation is this.
func HaveGeneration(generation int64) types.GomegaMatcher {
	return detail{
		property{fmt.Sprintf("have generation %d", generation), func(object *Object) bool {
			return object.GetGeneration() == generation
		}},
		func(object *Object) string { return fmt.Sprintf("generation %d", object.GetGeneration()) },
	}
}

// BeOwnedBy matches an object whose owner references name exactly these owners, in any order.
func BeOwnedBy(owners ...*Object) types.GomegaMatcher {
	var names, uids []string
	for _, owner := range owners {
		names = append(names, title(owner))
		uids = append(uids, string(owner.GetUID()))
	}
	return property{"be owned by exactly [" + strings.Join(names, ", ") + "]", func(object *Object) bool {
		var present []string
		for _, reference := range object.GetOwnerReferences() {
			present = append(present, string(reference.UID))
		}
		return sameSet(present, uids)
	}}
}

// BeUnchangedSince matches an object that is stored as it was: nobody wrote it in between.
func BeUnchangedSince(earlier *Object) types.GomegaMatcher {
	return detail{
		property{"be stored unchanged since resourceVersion " + earlier.GetResourceVersion() + ", when it was:\n  " + describe(earlier) +
			"\nIt is", func(object *Object) bool {
			return object.GetUID() == earlier.GetUID() && object.GetResourceVersion() == earlier.GetResourceVersion()
		}},
		func(object *Object) string { return "resourceVersion " + object.GetResourceVersion() },
	}
}

// Carry matches an answer that carries this object, and not only a Status.
func Carry(object *Object) types.GomegaMatcher {
	return property{"carry " + title(object), func(carried *Object) bool {
		return carried != nil && carried.GetKind() == object.GetKind() && carried.GetUID() == object.GetUID()
	}}
}

// haveCondition matches an object whose condition of this type is True.
func haveCondition(kind string) types.GomegaMatcher {
	return property{"have the condition " + kind, func(object *Object) bool {
		for _, entry := range conditionsOf(object) {
			condition, _ := entry.(map[string]any)
			if condition["type"] == kind && condition["status"] == "True" {
				return true
			}
		}
		return false
	}}
}

// ExceptDeletion is a copy of an object without what a deletion writes: for comparing all the rest.
func ExceptDeletion(object *Object) map[string]any {
	rest := object.DeepCopy()
	for _, field := range []string{
		"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "managedFields",
	} {
		unstructured.RemoveNestedField(rest.Object, "metadata", field)
	}
	return rest.Object
}

// answered is a matcher for the status of an answer.
type answered struct {
	status int
	name   string
}

// BeAnswered matches an answer with this HTTP status.
func BeAnswered(status int) types.GomegaMatcher {
	return answered{status, fmt.Sprintf("be answered %d %s", status, http.StatusText(status))}
}

// BeGone matches the answer to looking for an object that no longer exists.
func BeGone() types.GomegaMatcher { return answered{http.StatusNotFound, "be gone"} }

func (a answered) String() string { return a.name }

func (a answered) Match(actual any) (bool, error) {
	answer, ok := actual.(Answer)
	if !ok {
		return false, fmt.Errorf("%s is about an answer, not %T", a.name, actual)
	}
	return answer.Status == a.status, nil
}

func (a answered) FailureMessage(actual any) string {
	answer, _ := actual.(Answer)
	return strings.TrimSpace(fmt.Sprintf("Expected to %s:\n  %s\n%s", a.name, describeAny(actual), answer.Message()))
}

func (a answered) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("Expected not to %s:\n  %s", a.name, describeAny(actual))
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
