package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// findingLength is how many characters the cause of a finding may have in a line: what refuses an object may say much.
const findingLength = 300

// FindingLine is a finding in one line: the check, the cause, the effect, and what helps.
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

// Unusable says that a cluster of the report could not be tested.
func Unusable(r v1alpha1.Report) bool {
	return slices.ContainsFunc(r.Clusters, func(cluster v1alpha1.Cluster) bool { return cluster.Problem != "" })
}

// Findings are what preflight found on a cluster that is not in order, one line each.
func Findings(cluster v1alpha1.Cluster) string {
	var lines []string
	for _, finding := range cluster.Preflight {
		if finding.Severity != v1alpha1.OK {
			lines = append(lines, FindingLine(finding))
		}
	}
	return strings.Join(lines, "\n")
}
