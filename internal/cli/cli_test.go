package cli

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

func TestADefectOfTheRunnerIsNoVerdict(t *testing.T) {
	g := NewWithT(t)
	defect := crash.Caught("run the command", func() error { panic("a defect") })
	g.Expect(codeOf(defect)).To(Equal(ExitUnreachable))
}

func TestWhatWentWrongWithTheRunOutweighsThatAllHeld(t *testing.T) {
	left := errors.Join(run.ErrLeftBehind)
	for _, test := range []struct {
		name    string
		outcome v1alpha1.Outcome
		wrong   error
		code    int
	}{
		{"all held", v1alpha1.Passed, nil, ExitConformant},
		{"all held, and something was left", v1alpha1.Passed, left, ExitUnreachable},
		{"something failed, and something was left", v1alpha1.Failed, left, ExitNonconformant},
		{"something could not be judged", v1alpha1.Errored, nil, ExitUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			flags := runFlags{streams: genericiooptions.IOStreams{Out: &bytes.Buffer{}}}
			result := v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "a.b"}, Outcome: test.outcome}
			err := flags.conclude(v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Name: "c", Results: []v1alpha1.Result{result}}}}, test.wrong)
			if test.code == ExitConformant {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(codeOf(err)).To(Equal(test.code))
			if test.wrong != nil {
				g.Expect(err).To(MatchError(run.ErrLeftBehind))
			}
		})
	}
}
