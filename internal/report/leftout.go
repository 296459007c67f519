package report

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// leftOutLength is how many characters the line of a resource may have: what a server refuses of an object is long.
const leftOutLength = 400

// LeftOut is a line for each resource that was left out where all were to be tested, and why. It names the cluster
// where there are several.
func LeftOut(whole v1alpha1.Report) []string {
	var lines []string
	for _, left := range whole.LeftOut {
		on := ""
		if left.Cluster != whole.LeftOut[0].Cluster || left.Cluster != whole.LeftOut[len(whole.LeftOut)-1].Cluster {
			on = fmt.Sprintf(" on %q", left.Cluster)
		}
		lines = append(lines, OneLine(fmt.Sprintf("left out %s%s: %s", left.Resource, on, left.Reason), leftOutLength))
	}
	return lines
}
