package report_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

func TestLegend_Complete(t *testing.T) {
	g := NewWithT(t)
	for _, outcome := range v1alpha1.Outcomes {
		g.Expect(report.OutcomeMeanings).To(HaveKeyWithValue(outcome, Not(BeEmpty())))
	}
	for _, level := range v1alpha1.Levels {
		g.Expect(report.LevelMeanings).To(HaveKeyWithValue(level, Not(BeEmpty())))
	}
	for _, feature := range v1alpha1.Features {
		g.Expect(report.FeatureMeanings).To(HaveKeyWithValue(feature, Not(BeEmpty())))
	}
}
