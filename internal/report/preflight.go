package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// findingLength limits the cause of a finding in a line, in characters, because refusals can be long.
const findingLength = 300

// FindingLine describes a finding on one line: the check, the cause, the effect, and the remedy.
func FindingLine(finding v1alpha1.Finding) string {
	line := fmt.Sprintf("%s (%s): %s", finding.Check, finding.Severity, OneLine(finding.Cause, findingLength))
	if finding.Effect != "" {
		line += "; " + finding.Effect
	}
	if finding.Remedy != "" {
		line += "; remedy: " + finding.Remedy
	}
	return line
}

// Unusable reports whether a cluster of the report could not be tested.
func Unusable(r v1alpha1.Report) bool {
	return slices.ContainsFunc(r.Clusters, func(cluster v1alpha1.Cluster) bool { return cluster.Problem != "" })
}

// foundByBehaviors are parts of the skip reasons that only behaviors find: a feature gate or an admission plugin of the server is off, or a
// proxy changes what is sent.
var foundByBehaviors = []string{
	"the feature gate", "the admission plugin", "a proxy adds its own credentials", "the server speaks HTTP/1.1", "only possible on an embedded cluster",
}

// UnannouncedSkips returns the differences between the skips that preflight has announced and those of the run, one for each behavior.
// Reasons with one of the given parts need no announcement, as those that only behaviors find.
func UnannouncedSkips(cluster v1alpha1.Cluster, found ...string) []string {
	announced := map[string]string{}
	for _, finding := range cluster.Preflight {
		for _, id := range finding.Behaviors {
			announced[id] = finding.Cause
		}
	}
	var differences []string
	for _, result := range cluster.Results {
		cause, ok := announced[result.ID]
		reason := ReasonOf(result)
		excused := slices.ContainsFunc(slices.Concat(foundByBehaviors, found), func(part string) bool { return strings.Contains(reason, part) })
		switch skipped := result.Outcome == v1alpha1.Skipped; {
		case ok && !skipped:
			differences = append(differences, fmt.Sprintf("%s %s, and preflight announced that it is skipped: %s", result.ID, result.Outcome, cause))
		case !ok && skipped && !excused:
			differences = append(differences, fmt.Sprintf("%s is skipped, and preflight did not announce it: %s", result.ID, reason))
		}
	}
	return differences
}

// Findings returns the findings of a cluster that are not OK, one a line.
func Findings(cluster v1alpha1.Cluster) string {
	var lines []string
	for _, finding := range cluster.Preflight {
		if finding.Severity != v1alpha1.OK {
			lines = append(lines, FindingLine(finding))
		}
	}
	return strings.Join(lines, "\n")
}
