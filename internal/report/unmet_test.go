package report

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestFailuresWithOneCauseAreListedTogetherWithTheirStatements(t *testing.T) {
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

	NewWithT(t).Expect(Unmet(whole)).To(Equal([]string{
		`  2 behaviors, probably with one cause: ConfigMap "..." was not deleted`,
		"    failed a: The statement of a.",
		"    failed c: The statement of c.",
		"  failed b: The statement of b.",
		"    Expected GET /api to return 404 Not Found, got 200 OK",
		"  errored e: The statement of e.",
		"    connection refused",
	}))
}

func TestTheListOfFailuresIsLimited(t *testing.T) {
	var results []v1alpha1.Result
	for range maxUnmet + 3 {
		results = append(results, v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "a", Statement: "S."}, Outcome: v1alpha1.Errored, Reason: "EOF"})
	}
	lines := Unmet(v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Results: results}}})

	g := NewWithT(t)
	g.Expect(lines).To(HaveLen(maxUnmet + 2))
	g.Expect(lines[0]).To(Equal("  23 behaviors, probably with one cause: EOF"))
	g.Expect(lines[len(lines)-1]).To(Equal("  and 3 more"))
}
