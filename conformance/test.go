package conformance

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// errDeadline is why a run is ended before the deadline of its test.
var errDeadline = errors.New("the deadline of the test is near (go test -timeout)")

// Test tests the selected behaviors as Run does, and reports each as a subtest with the behavior's id, below one with the resource if there
// are several. The subtest of a known failure is skipped with its reason, or fails if it passes. It fails the test when Run returns an
// error. A run that is not finished shortly before the deadline of the test ends early. Without an Output, progress is logged by the test.
func Test(t *testing.T, config *rest.Config, options Options) v1alpha1.Report {
	t.Helper()
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		reserve, cleanup := environment.Reserve(time.Until(deadline))
		limited, cancel := context.WithDeadlineCause(ctx, deadline.Add(-reserve), errDeadline)
		defer cancel()
		ctx = limited
		options.CleanupTimeout = cmp.Or(options.CleanupTimeout, cleanup)
	}
	if options.Output == nil {
		options.Output = t.Output()
	}
	whole, err := Run(ctx, config, options)
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			name := result.ID
			if len(whole.Clusters) > 1 {
				name = cluster.Resource + "/" + name
			}
			if result.Outcome != v1alpha1.Filtered {
				t.Run(name, func(t *testing.T) { conclude(t, result) })
			}
		}
	}
	if err != nil && (!t.Failed() || !errors.Is(err, ErrNonconformant)) { // the subtests report those
		t.Error(err)
	}
	return whole
}

// conclude ends a subtest with the outcome of the behavior.
func conclude(t testing.TB, result v1alpha1.Result) {
	t.Helper()
	switch result.Outcome {
	case v1alpha1.Passed:
	case v1alpha1.Skipped, v1alpha1.Known:
		t.Skip(result.Reason)
	default:
		t.Errorf("%s\n%s", result.Statement, report.Message(result))
	}
}
