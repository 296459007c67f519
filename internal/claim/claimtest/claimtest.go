// Package claimtest has claims for tests.
package claimtest

import (
	"bytes"
	_ "embed"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// content is a real report.
//
//go:embed report.json
var content []byte

// Of returns the claim of an implementation: that of a real report, with changed results.
func Of(t *testing.T, project, version string, changes ...func(*v1alpha1.Result)) v1alpha1.ConformanceReport {
	t.Helper()
	g := NewWithT(t)
	of := content
	if len(changes) > 0 {
		whole, err := report.Decode(of)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range whole.Clusters[0].Results {
			for _, change := range changes {
				change(&whole.Clusters[0].Results[i])
			}
		}
		var changed bytes.Buffer
		g.Expect(report.WriteJSON(&changed, whole)).To(Succeed())
		of = changed.Bytes()
	}
	made, _, err := claim.Make(claim.Source{Report: of, Implementation: v1alpha1.Implementation{
		Organization: "Example", Project: project, Version: version, URL: "https://kubernetes.example.com",
		Contact: []string{"conformance@example.com"}, Reproduce: "runner --kubeconfig FILE --slow",
	}})
	g.Expect(err).NotTo(HaveOccurred())
	return made
}

// Fails makes a behavior fail with a message.
func Fails(id, message string) func(*v1alpha1.Result) {
	return func(result *v1alpha1.Result) {
		if result.ID == id {
			result.Outcome, result.Failure = v1alpha1.Failed, &v1alpha1.Failure{Message: message, Location: "suites/a.go:1"}
		}
	}
}
