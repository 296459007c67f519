package report

import (
	"slices"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// KubectlVersions returns the tested versions of kubectl, without duplicates.
func KubectlVersions(r v1alpha1.Report) []string {
	var versions []string
	for _, cluster := range r.Clusters {
		if version := cluster.KubectlVersion; version != "" && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return versions
}
