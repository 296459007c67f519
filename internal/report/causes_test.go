package report

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestFailureLines(t *testing.T) {
	result := func(id string, outcome v1alpha1.Outcome, message string) v1alpha1.Result {
		return v1alpha1.Result{
			Behavior: v1alpha1.Behavior{ID: id, Statement: "The statement of " + id + "."}, Outcome: outcome,
			Failure: &v1alpha1.Failure{Message: message},
		}
	}
	whole := v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Results: []v1alpha1.Result{
		result("a", v1alpha1.Failed, "Timed out after 15s: ConfigMap \"child-abc\" was not deleted.\nExpected events:"),
		result("b", v1alpha1.Failed, "Expected GET /api to return 404 Not Found, got 200 OK"),
		result("c", v1alpha1.Failed, "Timed out after 3s: ConfigMap \"other\" was not deleted.\nExpected events:"),
		result("d", v1alpha1.Passed, ""),
		{Behavior: v1alpha1.Behavior{ID: "e", Statement: "The statement of e."}, Outcome: v1alpha1.Errored, Reason: "connection refused"},
	}}}}

	NewWithT(t).Expect(FailureLines(whole)).To(Equal([]string{
		`  2 behaviors, probably with one cause: ConfigMap "..." was not deleted`,
		"    failed a: The statement of a.",
		"    failed c: The statement of c.",
		"  failed b: The statement of b.",
		"    Expected GET /api to return 404 Not Found, got 200 OK",
		"  errored e: The statement of e.",
		"    connection refused",
	}))
}

func TestFailureLines_Limit(t *testing.T) {
	var results []v1alpha1.Result
	for range 23 {
		results = append(results, v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "a", Statement: "S."}, Outcome: v1alpha1.Errored, Reason: "EOF"})
	}
	for i := range maxCauses {
		results = append(results, v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "b"}, Outcome: v1alpha1.Errored, Reason: strings.Repeat("x", i+1)})
	}
	lines := FailureLines(v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Results: results}}})

	g := NewWithT(t)
	g.Expect(lines[0]).To(Equal("  23 behaviors, probably with one cause: EOF"))
	g.Expect(lines[maxBehaviorsOfCause+1]).To(Equal("    and 18 more"))
	g.Expect(lines[len(lines)-1]).To(Equal("  and 1 more"))
}

func TestCauses(t *testing.T) {
	failed := func(id string, outcome v1alpha1.Outcome, cause, message string) v1alpha1.Result {
		return v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: id}, Outcome: outcome, Failure: &v1alpha1.Failure{Message: message, Cause: cause}}
	}
	const kept = "finalizers are not kept"
	whole := Concluded(v1alpha1.Report{Clusters: []v1alpha1.Cluster{
		{Name: "one", Results: []v1alpha1.Result{
			failed("c", v1alpha1.Failed, "", `Expected GET Lease "c" to return 200 OK, got 404 Not Found`),
			failed("b", v1alpha1.Failed, kept, "Lease b must exist"),
			failed("a", v1alpha1.Deviated, kept, "Lease a must exist"),
			failed("k", v1alpha1.Known, kept, "Lease k must exist"),
			{Behavior: v1alpha1.Behavior{ID: "p"}, Outcome: v1alpha1.Passed},
		}},
		{Name: "two", Results: []v1alpha1.Result{
			failed("b", v1alpha1.Failed, kept, "Lease b must exist"),
			failed("c", v1alpha1.Failed, "", `Expected GET Lease "d" to return 200 OK, got 404 Not Found`),
			{Behavior: v1alpha1.Behavior{ID: "e"}, Outcome: v1alpha1.Errored, Reason: "EOF"},
		}},
		{Name: "gone", Problem: "EOF", Results: []v1alpha1.Result{{Behavior: v1alpha1.Behavior{ID: "e"}, Outcome: v1alpha1.Errored, Reason: "EOF"}}},
	}})

	NewWithT(t).Expect(whole.Causes).To(Equal([]v1alpha1.Cause{
		{Cause: kept, Failed: 2, Deviated: 1, Behaviors: []string{"a", "b"}},
		{Cause: `Expected GET Lease "..." to return 200 OK, got 404 Not Found`, Failed: 2, Behaviors: []string{"c"}},
		{Cause: "EOF", Errored: 1, Behaviors: []string{"e"}},
	}))
}
