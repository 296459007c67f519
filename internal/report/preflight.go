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

// Announced maps the behaviors that preflight expects to be skipped to the causes.
func Announced(cluster v1alpha1.Cluster) map[string]string {
	announced := map[string]string{}
	for _, finding := range cluster.Preflight {
		for _, id := range finding.Behaviors {
			announced[id] = finding.Cause
		}
	}
	return announced
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
