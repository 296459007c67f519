package cli

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

func TestRun_RunnerDefect(t *testing.T) {
	g := NewWithT(t)
	defect := crash.Caught("run the command", func() error { panic("a defect") })
	g.Expect(codeOf(defect)).To(Equal(ExitRunError))
}

func TestConclude_RunErrors(t *testing.T) {
	left := errors.Join(run.ErrLeftBehind)
	for _, test := range []struct {
		name    string
		outcome v1alpha1.Outcome
		err     error
		code    int
	}{
		{"all held", v1alpha1.Passed, nil, ExitPassed},
		{"all held, and something was left", v1alpha1.Passed, left, ExitRunError},
		{"something failed, and something was left", v1alpha1.Failed, left, ExitFailed},
		{"something errored", v1alpha1.Errored, nil, ExitRunError},
		{"something failed as known", v1alpha1.Known, nil, ExitPassed},
		{"something failed as known, and something was left", v1alpha1.Known, left, ExitRunError},
		{"a known failure passed", v1alpha1.Outdated, nil, ExitFailed},
		{"all were skipped", v1alpha1.Skipped, nil, ExitUntested},
		{"all were skipped, and something was left", v1alpha1.Skipped, left, ExitRunError},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			flags := newRunFlags(genericiooptions.IOStreams{Out: &bytes.Buffer{}})
			result := v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: "a.b"}, Outcome: test.outcome}
			err := flags.conclude(reporttest.Run("dctest", 0, reporttest.OnCluster("c", result)), test.err)
			if test.code == ExitPassed {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(codeOf(err)).To(Equal(test.code))
			if test.err != nil {
				g.Expect(err).To(MatchError(run.ErrLeftBehind))
			}
		})
	}
}

func TestConclude_ClusterBeforeKubectl(t *testing.T) {
	for _, test := range []struct {
		name             string
		cluster, kubectl v1alpha1.Outcome
		err              error
		code             int
		line             string
	}{
		{"both held", v1alpha1.Passed, v1alpha1.Passed, nil, ExitPassed, "kubectl v1.37.2: conformant\n2 passed, 0 failed, 0 skipped\n"},
		{"kubectl failed", v1alpha1.Passed, v1alpha1.Failed, nil, ExitKubectl, "kubectl v1.37.2: not conformant: 1 behavior failed"},
		{"kubectl failed, and something was left", v1alpha1.Passed, v1alpha1.Failed, run.ErrLeftBehind, ExitKubectl, "kubectl v1.37.2: not conformant"},
		{"the cluster failed", v1alpha1.Failed, v1alpha1.Passed, nil, ExitFailed, "kubectl v1.37.2: conformant"},
		{"both failed", v1alpha1.Failed, v1alpha1.Failed, nil, ExitFailed, "kubectl v1.37.2: not conformant"},
		{"the cluster was not tested", v1alpha1.Skipped, v1alpha1.Failed, nil, ExitUntested, "kubectl v1.37.2: not conformant"},
		{"only kubectl was chosen, and held", v1alpha1.Filtered, v1alpha1.Passed, nil, ExitPassed, "not tested: "},
		{"only kubectl was chosen, and failed", v1alpha1.Filtered, v1alpha1.Failed, nil, ExitKubectl, "not tested: "},
		{"kubectl errored", v1alpha1.Passed, v1alpha1.Errored, nil, ExitRunError, "kubectl v1.37.2: run error"},
		{"kubectl failed as known", v1alpha1.Known, v1alpha1.Known, nil, ExitPassed, "kubectl v1.37.2: conformant except known failures\n0 passed, 0 failed, 2 failed as known, 0 skipped\n"},
		{"a known failure of kubectl passed", v1alpha1.Passed, v1alpha1.Outdated, nil, ExitKubectl, "kubectl v1.37.2: known failures outdated: "},
		{"there is no kubectl", v1alpha1.Passed, v1alpha1.Skipped, nil, ExitPassed, "conformant\n1 passed, 0 failed, 1 skipped\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			said := &bytes.Buffer{}
			flags := newRunFlags(genericiooptions.IOStreams{Out: said})
			err := flags.conclude(reporttest.Run("dctest", 0, v1alpha1.Cluster{Name: "c", KubectlVersion: "v1.37.2", Results: []v1alpha1.Result{
				{Behavior: v1alpha1.Behavior{ID: "a.b"}, Outcome: test.cluster},
				{Behavior: v1alpha1.Behavior{ID: "kubectl.c", Features: []v1alpha1.Feature{v1alpha1.Kubectl}}, Outcome: test.kubectl},
			}}), test.err)
			code := ExitPassed
			if err != nil {
				code = codeOf(err)
			}
			g.Expect(code).To(Equal(test.code))
			g.Expect(said.String()).To(ContainSubstring("\n" + test.line))
		})
	}
}
