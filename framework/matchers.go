package framework

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/gcustom"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// propertyMatcher matches a property of an object, or of the object in a response.
type propertyMatcher struct {
	gcustom.CustomGomegaMatcher
	// name describes the matcher as part of a sentence: "be terminating".
	name string
	// more adds to the description of an object.
	more func(*Object) string
}

// String describes the matcher as part of a sentence, for event matchers.
func (p propertyMatcher) String() string { return p.name }

// GomegaString is the description in messages of Gomega's matchers.
func (p propertyMatcher) GomegaString() string { return p.name }

// propertyTemplate is the failure message of property matchers.
var propertyTemplate = template.Must(gcustom.ParseTemplate("Expected {{.Data.Subject .Actual}} {{.To}} {{.Data}}, got:\n  {{.Data.Describe .Actual}}"))

// Property returns a matcher for a property of an object. The optional function adds to the description of the object.
func Property(name string, is func(*Object) bool, more ...func(*Object) string) propertyMatcher {
	matcher := propertyMatcher{name: name, more: func(*Object) string { return "" }}
	if len(more) > 0 {
		matcher.more = func(object *Object) string { return "; " + more[0](object) }
	}
	matcher.CustomGomegaMatcher = gcustom.MakeMatcher(func(actual any) (bool, error) {
		switch actual := actual.(type) {
		case *Object:
			return is(actual), nil
		case Response:
			switch {
			case actual.Err != nil:
				return false, actual.Err
			case actual.Object == nil:
				return false, fmt.Errorf("cannot %s: %s has no object", name, describe.Response(actual))
			}
			return is(actual.Object), nil
		}
		return false, fmt.Errorf("cannot %s: expected an object or a response, got %T", name, actual)
	}).WithPrecompiledTemplate(propertyTemplate, matcher)
	return matcher
}

// Subject names the actual value in failure messages.
func (p propertyMatcher) Subject(actual any) string {
	switch actual := actual.(type) {
	case *Object:
		return client.Title(actual)
	case Response:
		return "the object that " + actual.Request + " returns"
	}
	return fmt.Sprint(actual)
}

// Describe describes the actual value in failure messages.
func (p propertyMatcher) Describe(actual any) string {
	switch actual := actual.(type) {
	case *Object:
		return describe.Object(actual) + p.more(actual)
	case Response:
		if actual.Object != nil {
			return describe.Response(actual) + p.more(actual.Object)
		}
		return describe.Response(actual)
	}
	return fmt.Sprint(actual)
}

// BeTerminating matches an object with a deletionTimestamp.
func BeTerminating() types.GomegaMatcher {
	return Property("be terminating", func(object *Object) bool { return object.GetDeletionTimestamp() != nil })
}

// HaveFinalizer matches an object with a finalizer, possibly among others.
func HaveFinalizer(finalizer string) types.GomegaMatcher {
	return Property("have the finalizer "+finalizer, func(object *Object) bool {
		return slices.Contains(object.GetFinalizers(), finalizer)
	})
}

// HaveFinalizers matches an object with exactly these finalizers, in any order, except for those of other managers.
func HaveFinalizers(finalizers ...string) types.GomegaMatcher {
	return Property(finality(finalizers), func(object *Object) bool {
		return sameSet(finalizers, slices.DeleteFunc(object.GetFinalizers(), func(finalizer string) bool {
			return client.IsOfOtherManager(finalizer) && !slices.Contains(finalizers, finalizer)
		}))
	})
}

func finality(finalizers []string) string {
	if len(finalizers) == 0 {
		return "have no finalizers"
	}
	return "have exactly the finalizers " + strings.Join(finalizers, ", ")
}

// HaveGracePeriod matches an object with this deletionGracePeriodSeconds.
func HaveGracePeriod(seconds int64) types.GomegaMatcher {
	return Property(fmt.Sprintf("have deletionGracePeriodSeconds %d", seconds), func(object *Object) bool {
		grace := object.GetDeletionGracePeriodSeconds()
		return grace != nil && *grace == seconds
	})
}

// HaveDeletionTimestamp matches an object with this deletionTimestamp.
func HaveDeletionTimestamp(moment *metav1.Time) types.GomegaMatcher {
	return Property("have the deletionTimestamp "+moment.UTC().Format(time.TimeOnly), func(object *Object) bool {
		return object.GetDeletionTimestamp().Equal(moment)
	})
}

// HaveGeneration matches an object with this metadata.generation.
func HaveGeneration(generation int64) types.GomegaMatcher {
	return Property(fmt.Sprintf("have generation %d", generation),
		func(object *Object) bool { return object.GetGeneration() == generation },
		func(object *Object) string { return fmt.Sprintf("generation %d", object.GetGeneration()) })
}

// BeOwnedBy matches an object whose owner references are exactly these owners, in any order.
func BeOwnedBy(owners ...*Object) types.GomegaMatcher {
	var names, uids []string
	for _, owner := range owners {
		names = append(names, client.Title(owner))
		uids = append(uids, string(owner.GetUID()))
	}
	return Property(ownership(names), func(object *Object) bool {
		var present []string
		for _, reference := range object.GetOwnerReferences() {
			present = append(present, string(reference.UID))
		}
		return sameSet(present, uids)
	})
}

func ownership(owners []string) string {
	if len(owners) == 0 {
		return "have no owner references"
	}
	return "be owned by " + strings.Join(owners, " and ") + " only"
}

// BeUnchangedSince matches an object in the same state, except for writes of other managers.
func BeUnchangedSince(earlier *Object) types.GomegaMatcher {
	return Property("be unchanged since resourceVersion "+earlier.GetResourceVersion()+" ("+describe.Object(earlier)+")",
		func(object *Object) bool { return equalIgnoringOtherManagers(earlier, object) },
		func(object *Object) string {
			return fmt.Sprintf("resourceVersion %s, changed fields %q", object.GetResourceVersion(), changedByUs(earlier, object))
		})
}

// HaveStateOf matches a complete object in the same state, except for writes of other managers.
func HaveStateOf(earlier *Object) types.GomegaMatcher {
	return Property("be complete and unchanged ("+describe.Object(earlier)+")",
		func(object *Object) bool {
			return equality.Semantic.DeepEqual(earlier, object) || ChangedByOtherManagers(earlier, object)
		},
		func(object *Object) string { return fmt.Sprintf("changed fields %q", changedByUs(earlier, object)) })
}

// BeSameObjectAs matches this object in any state, or a response with it instead of only a Status.
func BeSameObjectAs(object *Object) types.GomegaMatcher {
	return Property("be the same object as "+client.Title(object), func(carried *Object) bool {
		return carried.GetKind() == object.GetKind() && carried.GetUID() == object.GetUID()
	})
}

// HaveCondition matches an object whose condition of this type is True.
func HaveCondition(kind string) types.GomegaMatcher {
	return Property("have the condition "+kind, func(object *Object) bool {
		return meta.IsStatusConditionTrue(describe.Conditions(object), kind)
	})
}

// HaveConditionSaying matches an object whose condition of this type is True and has all of these texts in its reason or message.
func HaveConditionSaying(kind string, texts ...string) types.GomegaMatcher {
	return Property(fmt.Sprintf("have the condition %s with %q", kind, texts), func(object *Object) bool {
		condition := meta.FindStatusCondition(describe.Conditions(object), kind)
		return condition != nil && condition.Status == metav1.ConditionTrue && !slices.ContainsFunc(texts, func(text string) bool {
			return !strings.Contains(condition.Reason+": "+condition.Message, text)
		})
	}, func(object *Object) string {
		condition := meta.FindStatusCondition(describe.Conditions(object), kind)
		if condition == nil {
			return "it has no condition " + kind
		}
		return fmt.Sprintf("%s is %s, %s: %s", kind, condition.Status, condition.Reason, condition.Message)
	})
}

// HaveConditionFalse matches an object whose condition of this type exists and is False.
func HaveConditionFalse(kind string) types.GomegaMatcher {
	return Property("have the condition "+kind+" False", func(object *Object) bool {
		return meta.IsStatusConditionFalse(describe.Conditions(object), kind)
	})
}

// HavePhase matches a pod, or a namespace, in one of these phases.
func HavePhase[Phase ~string](phases ...Phase) types.GomegaMatcher {
	return Property(fmt.Sprintf("have phase %v", phases), func(object *Object) bool {
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return slices.Contains(phases, Phase(phase))
	})
}

// statusTemplate is the failure message for status codes.
var statusTemplate = template.Must(gcustom.ParseTemplate("Expected {{.Actual.Request}} {{.To}} {{.Data}}, got {{.Data.Returned .Actual}}"))

// statusMatcher matches the HTTP status code of a response.
type statusMatcher struct {
	gcustom.CustomGomegaMatcher
	// name describes the matcher as part of a sentence: "return 404 Not Found".
	name string
}

// String describes the matcher as part of a sentence.
func (s statusMatcher) String() string { return s.name }

// Returned describes a response in failure messages.
func (s statusMatcher) Returned(response Response) string { return describe.Returned(response) }

func status(name string, is func(Response) bool) types.GomegaMatcher {
	matcher := statusMatcher{name: name}
	matcher.CustomGomegaMatcher = gcustom.MakeMatcher(func(response Response) (bool, error) { return is(response), nil }).
		WithPrecompiledTemplate(statusTemplate, matcher)
	return matcher
}

// HaveStatusCode matches a response with this HTTP status code.
func HaveStatusCode(code int) types.GomegaMatcher {
	return status(fmt.Sprintf("return %d %s", code, http.StatusText(code)), func(response Response) bool { return response.StatusCode == code })
}

// BeAccepted matches the response to an accepted delete: 200 OK or 202 Accepted, with the object or a Status. The API reference
// lists these for every delete.
func BeAccepted() types.GomegaMatcher {
	return status("return 200 OK or 202 Accepted with the object or a Status", func(response Response) bool {
		return response.Object != nil && slices.Contains([]int{http.StatusOK, http.StatusAccepted}, response.StatusCode)
	})
}

// BeGone matches the response to a read of an object that no longer exists.
func BeGone() types.GomegaMatcher { return HaveStatusCode(http.StatusNotFound) }

// countTemplate is the failure message of HaveCount.
var countTemplate = template.Must(gcustom.ParseTemplate("Expected {{.Data.Count}} {{.Data.What}}, observed {{len .Actual}}{{range .Actual}}\n  {{$.Data.Describe .}}{{end}}"))

// counted is the expectation of HaveCount.
type counted struct {
	Count int
	What  string
}

// Describe describes an object in failure messages.
func (counted) Describe(object *Object) string { return describe.Object(object) }

// HaveCount matches this many objects. The text describes them in the plural: `dependents of ConfigMap "owner"`.
func HaveCount(count int, what string) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(objects []*Object) (bool, error) { return len(objects) == count, nil }).
		WithPrecompiledTemplate(countTemplate, counted{count, what})
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// HaveJSONPath matches an object by a JSONPath as in kubectl wait: HaveJSONPath("{.status.phase}", "Bound"). A missing field is empty.
func HaveJSONPath(path, value string) types.GomegaMatcher {
	parsed := jsonpath.New(path).AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		ginkgo.Fail(fmt.Sprintf("parse the JSONPath %s: %v", path, err))
	}
	shown := func(object *Object) string {
		var text strings.Builder
		if err := parsed.Execute(&text, object.Object); err != nil {
			return err.Error()
		}
		return text.String()
	}
	return Property(fmt.Sprintf("have %q at %s", value, path),
		func(object *Object) bool { return shown(object) == value },
		func(object *Object) string { return fmt.Sprintf("%s is %q", path, shown(object)) })
}

// HaveStatus matches an object with this value in a field of its status. A missing number is 0.
func HaveStatus(field string, value any) types.GomegaMatcher {
	read := func(object *Object) any {
		present, found, _ := unstructured.NestedFieldNoCopy(object.Object, "status", field)
		if _, number := value.(int64); number && !found {
			return int64(0)
		}
		return present
	}
	return Property(fmt.Sprintf("have the status %s %v", field, value),
		func(object *Object) bool { return equality.Semantic.DeepEqual(read(object), value) },
		func(object *Object) string { return fmt.Sprintf("status %s %v", field, read(object)) })
}
