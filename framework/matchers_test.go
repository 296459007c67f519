package framework

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

func TestObjectMatchers(t *testing.T) {
	death := metav1.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC) // as set by dying
	later := metav1.NewTime(death.Add(time.Second))
	version := func(version string) ObjectOption {
		return func(object *Object) { object.SetResourceVersion(version) }
	}
	established := stored("definition")
	conditions := []any{
		map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "it has 2 names"},
		map[string]any{"type": "Other", "status": "False", "reason": "Other", "message": "it has 2 names"},
	}
	if err := unstructured.SetNestedSlice(established.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		object  *Object
		matcher types.GomegaMatcher
		want    bool
	}{
		{"living", owner, BeTerminating(), false},
		{"terminating", ownerDies, BeTerminating(), true},
		{"one finalizer among others", stored("o", WithFinalizers("a.io/b", Hold)), HaveFinalizer(Hold), true},
		{"another finalizer", stored("o", WithFinalizers("a.io/b")), HaveFinalizer(Hold), false},
		{"exactly these, in another order", stored("o", WithFinalizers("a.io/b", Hold)), HaveFinalizers(Hold, "a.io/b"), true},
		{"one too many", stored("o", WithFinalizers(Domain+"/b", Hold)), HaveFinalizers(Hold), false},
		{"one too few", stored("o", WithFinalizers(Hold)), HaveFinalizers(Hold, "a.io/b"), false},
		{"twice is not once", stored("o", WithFinalizers(Hold, Hold)), HaveFinalizers(Hold), false},
		{"none", owner, HaveFinalizers(), true},
		{"grace", stored("o", graceful(30)), HaveGracePeriod(30), true},
		{"another grace", stored("o", graceful(30)), HaveGracePeriod(0), false},
		{"no grace is not 0", owner, HaveGracePeriod(0), false},
		{"the moment", ownerDies, HaveDeletionTimestamp(&death), true},
		{"another moment", ownerDies, HaveDeletionTimestamp(&later), false},
		{"no moment", owner, HaveDeletionTimestamp(&death), false},
		{"generation", owner, HaveGeneration(0), true},
		{"another generation", owner, HaveGeneration(1), false},
		{"owned by both", stored("o", OwnedBy(owner), OwnedBy(other)), BeOwnedBy(other, owner), true},
		{"owned by one more", stored("o", OwnedBy(owner), OwnedBy(other)), BeOwnedBy(other), false},
		{"owned by nobody", owner, BeOwnedBy(), true},
		{"unchanged", stored("o", version("7")), BeUnchangedSince(stored("o", version("7"))), true},
		{"written in between", stored("o", version("8")), BeUnchangedSince(stored("o", version("7"))), false},
		{"a namesake", stored("p", version("7")), BeUnchangedSince(stored("o", version("7"))), false},
		{"a condition", established, HaveCondition("Established"), true},
		{"a condition that is False", established, HaveCondition("Other"), false},
		{"a condition nobody set", owner, HaveCondition("Established"), false},
		{"a condition that is False, as wanted", established, HaveConditionFalse("Other"), true},
		{"a condition that is True", established, HaveConditionFalse("Established"), false},
		{"a condition nobody set, wanted False", owner, HaveConditionFalse("Established"), false},
		{"a condition that says both", established, HaveConditionSaying("Established", "InitialNames", "has 2 "), true},
		{"a condition that says one", established, HaveConditionSaying("Established", "InitialNames", "has 3 "), false},
		{"a condition that says it and is False", established, HaveConditionSaying("Other", "has 2 "), false},
		{"nobody's condition says nothing", owner, HaveConditionSaying("Established"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.matcher.Match(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("want %t, got %t: %s", test.want, got, test.matcher.FailureMessage(test.object))
			}
		})
	}
}

func TestResponseMatchers(t *testing.T) {
	g := NewWithT(t)
	accepted := Response{StatusCode: http.StatusOK, Object: ownerDies, Request: "DELETE /api/v1/configmaps/owner"}
	refused := Response{
		StatusCode: http.StatusConflict, Err: errors.New("the object has been modified"), Object: &Object{Object: map[string]any{"kind": "Status"}},
		Request: "DELETE /api/v1/configmaps/owner",
	}
	silent := Response{StatusCode: http.StatusOK, Request: "DELETE /api/v1/configmaps/owner"}

	g.Expect(accepted).To(And(HaveStatusCode(http.StatusOK), BeSameObjectAs(owner), BeTerminating()))
	g.Expect(accepted).NotTo(BeSameObjectAs(child))
	status := Response{StatusCode: http.StatusOK, Object: &Object{Object: map[string]any{"kind": "Status"}}}
	g.Expect(status).NotTo(BeSameObjectAs(owner))
	g.Expect(refused).To(HaveStatusCode(http.StatusConflict))
	g.Expect(refused).NotTo(Or(BeGone(), BeAccepted()))
	g.Expect(accepted).To(BeAccepted())
	status.StatusCode = http.StatusAccepted
	g.Expect(status).To(BeAccepted())
	g.Expect(Response{StatusCode: http.StatusOK}).NotTo(BeAccepted(), "it carries nothing")
	g.Expect(Response{StatusCode: http.StatusNotFound, Err: errors.New("not found")}).To(BeGone())

	_, err := BeTerminating().Match(refused)
	g.Expect(err).To(MatchError("the object has been modified"), "a refusal is no object")
	_, err = BeTerminating().Match("owner")
	g.Expect(err).To(MatchError("cannot be terminating: expected an object or a response, got string"))
	_, err = BeGone().Match(owner)
	g.Expect(err).To(MatchError(HavePrefix("Matcher expected actual of type <client.Response>")))
	_, err = BeTerminating().Match(silent)
	g.Expect(err).To(MatchError("cannot be terminating: DELETE /api/v1/configmaps/owner returned 200 OK has no object"))
}

func TestMatcherMessages(t *testing.T) {
	g := NewWithT(t)
	response := Response{StatusCode: http.StatusOK, Object: owner, Request: "GET /api/v1/configmaps/owner"}
	refused := Response{StatusCode: http.StatusConflict, Err: errors.New("modified"), Request: "DELETE /api/v1/configmaps/owner"}

	g.Expect(BeTerminating().FailureMessage(owner)).To(Equal("Expected ConfigMap \"owner\" to be terminating, got:\n  ConfigMap \"owner\""))
	g.Expect(BeTerminating().NegatedFailureMessage(ownerFree)).To(Equal(
		"Expected ConfigMap \"owner\" not to be terminating, got:\n  ConfigMap \"owner\"; deletionTimestamp 07:08:09"))
	g.Expect(HaveGracePeriod(5).FailureMessage(response)).To(Equal(
		"Expected the object that GET /api/v1/configmaps/owner returns to have deletionGracePeriodSeconds 5, got:\n" +
			"  GET /api/v1/configmaps/owner returned 200 OK: ConfigMap \"owner\""))
	g.Expect(BeGone().FailureMessage(response)).To(Equal(
		"Expected GET /api/v1/configmaps/owner to return 404 Not Found, got 200 OK: ConfigMap \"owner\""))
	g.Expect(HaveStatusCode(http.StatusOK).FailureMessage(refused)).To(Equal(
		"Expected DELETE /api/v1/configmaps/owner to return 200 OK, got 409 Conflict: modified"))
	g.Expect(HaveStatusCode(http.StatusConflict).NegatedFailureMessage(refused)).To(Equal(
		"Expected DELETE /api/v1/configmaps/owner not to return 409 Conflict, got 409 Conflict: modified"))
	g.Expect(HaveCount(2, "mirror pods of Pod \"p\"").FailureMessage([]*Object{owner})).To(Equal(
		"Expected 2 mirror pods of Pod \"p\", observed 1\n  ConfigMap \"owner\""))
}

// TestFailureMessages_NoGo fails assertions of every kind that specs use, with the messages of a run.
func TestFailureMessages_NoGo(t *testing.T) {
	format.RegisterCustomFormatter(describe.Value)
	response := Response{StatusCode: http.StatusOK, Object: owner, Request: "GET /api/v1/configmaps/owner"}
	options := []metav1.DeleteOptions{{GracePeriodSeconds: new(int64(3))}}
	pointer := func(o *metav1.DeleteOptions) *int64 { return o.GracePeriodSeconds }
	history := historyOf(all, added(owner), modified(ownerDies))
	for _, test := range []struct {
		actual  any
		matcher types.GomegaMatcher
		says    string
	}{
		{[]*Object{owner}, HaveLen(2), `Expected [ConfigMap "owner"] to have length 2`},
		{[]*Object{}, HaveLen(2), "Expected [] to have length 2"},
		{[]*Object{owner}, BeEmpty(), `Expected [ConfigMap "owner"] to be empty`},
		{[]*Object{owner, child}, ConsistOf(BeSameObjectAs(other)), "to consist of"},
		{[]*Object{owner}, ConsistOf(And(BeSameObjectAs(child), Not(BeTerminating()))), "be the same object as ConfigMap \"child\" and not be terminating"},
		{[]*Object{owner}, ContainElement(And(BeSameObjectAs(child), BeOwnedBy())), "have no owner references"},
		{[]*Object{owner}, HaveEach(BeTerminating()), "be terminating"},
		{[]*Object{owner, child}, HaveExactElements(BeSameObjectAs(owner)), ""},
		{[]Response{response}, ContainElement(HaveStatusCode(http.StatusConflict)), "contain element matching return 409 Conflict"},
		{[]Response{response}, HaveEach(Or(HaveStatusCode(http.StatusConflict), HaveStatusCode(http.StatusNotFound))), "return 409 Conflict or return 404 Not Found"},
		{response, Or(HaveStatusCode(http.StatusConflict), BeGone()), "return 404 Not Found"},
		{options, ConsistOf(HaveField("GracePeriodSeconds", HaveValue(BeEquivalentTo(0)))), "have GracePeriodSeconds that must"},
		{options, ConsistOf(HaveField("GracePeriodSeconds", BeNil())), ""},
		{&options[0], WithTransform(pointer, HaveValue(BeEquivalentTo(1))), ""},
		{&options[0], HaveField("GracePeriodSeconds", BeNil()), "GracePeriodSeconds: "},
		{[]string{"a"}, Equal([]string{"PATCH nodes"}), ""},
		{"text", HavePrefix("error: "), "Expected text to have prefix error:"},
		{[]string{"warning"}, ContainElement(ContainSubstring("uid")), "contain substring"},
		{5, BeNumerically(">=", 30), "Expected 5 to be >= 30"},
		{map[string]any{"status": "Failure"}, HaveKeyWithValue("status", "Success"), ""},
		{errors.New("connection refused"), Not(HaveOccurred()), "Unexpected error: connection refused"},
		{owner.GetOwnerReferences(), ConsistOf(ReferenceTo(owner, Blocking)), ""},
		{&metav1.Time{}, BeNil(), ""},
		{owner, And(BeTerminating(), HaveGracePeriod(1)), "be terminating"},
		{history, HaveObserved(Matching(owner, HaveLen(3)), Deleted(owner)), ""},
		{history, HaveObservedOnly(Added(owner)), "Expected 1 event(s), observed 2"},
		{history, Not(HaveObserved(Terminating(owner))), "must not occur"},
	} {
		var said string
		NewGomega(func(message string, _ ...int) { said = describe.Message(message) }).
			Eventually(test.actual).WithTimeout(time.Millisecond).Should(test.matcher)
		for _, dump := range []string{"<*", "| len:", "0x", "matchers.", "Bailing", "&{", "unstructured", "interface"} {
			if strings.Contains(said, dump) {
				t.Errorf("%q in:\n%s", dump, said)
			}
		}
		if said == "" || !strings.Contains(said, test.says) {
			t.Errorf("want %q in:\n%s", test.says, said)
		}
		t.Log(said)
	}
}
