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

// Catalog returns the behaviors of the real report.
func Catalog(t *testing.T) []v1alpha1.Behavior {
	t.Helper()
	whole, err := report.Decode(content)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var catalog []v1alpha1.Behavior
	for _, result := range whole.Clusters[0].Results {
		catalog = append(catalog, result.Behavior)
	}
	return catalog
}

// AddTo verifies claims and adds them to a site. They must follow from their reports.
func AddTo(t *testing.T, add func([]byte, claim.Verification) error, claims ...v1alpha1.ConformanceReport) {
	t.Helper()
	g, catalog := NewWithT(t), Catalog(t)
	for _, of := range claims {
		var encoded bytes.Buffer
		g.Expect(claim.Encode(&encoded, of)).To(Succeed())
		verified, err := claim.Verify(encoded.Bytes(), catalog)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(verified.Problems).To(BeEmpty())
		g.Expect(add(encoded.Bytes(), verified)).To(Succeed())
	}
}

// Of returns the claim of an implementation: that of a real report, with changed results.
func Of(t *testing.T, project, version string, changes ...func(*v1alpha1.Result)) v1alpha1.ConformanceReport {
	t.Helper()
	return changed(t, project, version, func(whole *v1alpha1.Report) {
		for i := range whole.Clusters[0].Results {
			for _, change := range changes {
				change(&whole.Clusters[0].Results[i])
			}
		}
	})
}

// ByRunner returns the claim of a real report by another version of the runner.
func ByRunner(t *testing.T, version string) v1alpha1.ConformanceReport {
	t.Helper()
	return changed(t, "distro", "1", func(whole *v1alpha1.Report) { whole.Runner = version })
}

func changed(t *testing.T, project, version string, change func(*v1alpha1.Report)) v1alpha1.ConformanceReport {
	t.Helper()
	g := NewWithT(t)
	whole, err := report.Decode(content)
	g.Expect(err).NotTo(HaveOccurred())
	change(&whole)
	var encoded bytes.Buffer
	g.Expect(report.WriteJSON(&encoded, report.Concluded(whole))).To(Succeed())
	made, _, err := claim.Make(claim.Source{Report: encoded.Bytes(), Implementation: v1alpha1.Implementation{
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
