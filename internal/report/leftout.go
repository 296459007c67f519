package report

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// leftOutLength limits the line of a resource, in characters, because refusals of a server are long.
const leftOutLength = 400

// Resources counts resources in words.
func Resources(n int) string {
	if n == 1 {
		return "1 resource"
	}
	return fmt.Sprintf("%d resources", n)
}

// LeftOut returns a line for each resource that was left out of a run of all resources, with the reason. It contains the cluster if there
// are several.
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
