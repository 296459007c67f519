package site

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// versions returns the claims of a subject, the oldest first, with the medians of their background deletions in seconds.
func versions(medians ...float64) line {
	of := line{subject: "example"}
	for i, median := range medians {
		e := &entry{slug: fmt.Sprintf("example-%d", i+1), figures: []v1alpha1.Figure{{Operation: v1alpha1.BackgroundDelete, Count: 100, P50: median}}}
		e.claim.Implementation.Version = fmt.Sprintf("1.%d", i+1)
		of.entries = append(of.entries, e)
	}
	return of
}

func TestSite_Drift(t *testing.T) {
	g := NewWithT(t)
	content, err := render(page{"How long deletions took", "", "latency", latencyOf([]line{versions(0.1, 0.12, 0.1, 1.1, 1, 1.2)})})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(And(ContainSubstring("<h2>Drifts</h2>"), ContainSubstring(`<a href="claims/example-4.html">`), ContainSubstring("1.10 s")))

	content, err = render(page{"How long deletions took", "", "latency", latencyOf([]line{versions(0.1, 0.12, 0.1, 1.1, 0.1, 0.12)})})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).NotTo(ContainSubstring("Drifts"), "one slow version is noise")
}
