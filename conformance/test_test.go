package conformance

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// subtest notes how a subtest is ended.
type subtest struct {
	testing.TB
	said string
}

func (s *subtest) Helper() {}

func (s *subtest) Skip(reason ...any) { s.said = "skipped: " + fmt.Sprint(reason...) }

func (s *subtest) Errorf(format string, values ...any) {
	s.said = "failed: " + fmt.Sprintf(format, values...)
}

func TestSubtest_Outcomes(t *testing.T) {
	for _, test := range []struct {
		outcome v1alpha1.Outcome
		reason  string
		failure *v1alpha1.Failure
		want    string
	}{
		{v1alpha1.Passed, "", nil, ""},
		{v1alpha1.Skipped, "no node", nil, "skipped: no node"},
		{v1alpha1.Known, "known failure: bug 1", &v1alpha1.Failure{Message: "M"}, "skipped: known failure: bug 1"},
		{v1alpha1.Outdated, "passed, but is listed", nil, "failed: S\npassed, but is listed"},
		{v1alpha1.Failed, "", &v1alpha1.Failure{Message: "M"}, "failed: S\nM"},
		{v1alpha1.Failed, "its entry ended", &v1alpha1.Failure{Message: "M"}, "failed: S\nM\n\nits entry ended"},
		{v1alpha1.Errored, "refused", nil, "failed: S\nrefused"},
	} {
		ended := &subtest{}
		conclude(ended, v1alpha1.Result{Behavior: v1alpha1.Behavior{Statement: "S"}, Outcome: test.outcome, Reason: test.reason, Failure: test.failure})
		NewWithT(t).Expect(ended.said).To(Equal(test.want), string(test.outcome))
	}
}
