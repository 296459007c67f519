package environments

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// expectation is the expected result of an environment, besides that nothing fails.
type expectation struct {
	// passed is the minimum number of behaviors that pass.
	passed int
	// code is the exit code of the runner.
	code int
	// causes are parts of valid skip reasons, besides the ordinary ones.
	causes []string
	// found are parts of the skip reasons that only behaviors find, because they depend on more than a dry-run shows.
	found []string
}

// ordinary are parts of skip reasons on every cluster without a node that was not created for the run.
var ordinary = []string{"no node", "two schedulable nodes", "--disruptive", "no controller was named", "does not serve", "the feature gate", "only possible on an embedded cluster", "was not created for this run"}

// check returns the violated expectations. The count of passed behaviors applies to a whole run.
func (e expectation) check(result result, whole bool) []error {
	var violations []error
	for _, cluster := range result.report.Clusters {
		if cluster.Problem != "" {
			violations = append(violations, fmt.Errorf("the run gave up: %s", cluster.Problem))
			continue
		}
		violations = append(violations, e.checkCluster(cluster)...)
	}
	if passed := result.report.Counts[v1alpha1.Passed]; whole && passed < e.passed {
		violations = append(violations, fmt.Errorf("%d behaviors passed, and at least %d must", passed, e.passed))
	}
	if result.Code != e.code {
		violations = append(violations, fmt.Errorf("exit code %d instead of %d", result.Code, e.code))
	}
	for _, harm := range result.Harm {
		violations = append(violations, fmt.Errorf("harm: %s", harm))
	}
	return violations
}

// checkCluster returns the behaviors that failed, and the skip reasons, each once, that do not name a part of the environment.
func (e expectation) checkCluster(cluster v1alpha1.Cluster) []error {
	var violations []error
	skipped := map[string][]string{}
	for _, one := range cluster.Results {
		switch reason := report.ReasonOf(one); one.Outcome {
		case v1alpha1.Passed, v1alpha1.Filtered:
		case v1alpha1.Skipped:
			if !contains(reason, ordinary) && !contains(reason, e.causes) {
				skipped[general(reason)] = append(skipped[general(reason)], one.ID)
			}
		default:
			violations = append(violations, fmt.Errorf("%s %s: %s", one.ID, one.Outcome, beginning(reason)))
		}
	}
	for _, difference := range report.UnannouncedSkips(cluster, e.found...) {
		violations = append(violations, errors.New(beginning(difference)))
	}
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		violations = append(violations, fmt.Errorf("%d are skipped, such as %s, and the reason names no part of the environment: %s", len(skipped[reason]), skipped[reason][0], reason))
	}
	return violations
}

func contains(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// beginning returns the beginning of a text, on one line.
func beginning(text string) string {
	return strings.Join(strings.Fields(text[:min(len(text), 400)]), " ")
}
