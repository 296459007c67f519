package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// latestEnd is how long before the deadline of a test (go test -timeout) a run that is not done is ended, so that it can remove what it
// made and write its reports. It is a fifth of the time where that is less.
const latestEnd = 2 * time.Minute

// errDeadline is why a run is ended before the deadline of its test.
var errDeadline = errors.New("the deadline of the test is near (go test -timeout)")

// Test tests the chosen behaviors as Run does, and reports each as a subtest that is named by the behavior's id, below one named by the
// resource where there are several. It fails the test where Run returns an error. A run that is not done shortly before the deadline of
// the test ends early. Without an Output, progress goes to that of the test.
func Test(t *testing.T, config *rest.Config, options Options) v1alpha1.Report {
	t.Helper()
	ctx := t.Context()
	if deadline, is := t.Deadline(); is {
		end := deadline.Add(-min(latestEnd, time.Until(deadline)/5))
		limited, cancel := context.WithDeadlineCause(ctx, end, errDeadline)
		defer cancel()
		ctx = limited
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
	if err != nil && !t.Failed() {
		t.Error(err)
	}
	return whole
}

// conclude ends a subtest as the behavior ended.
func conclude(t *testing.T, result v1alpha1.Result) {
	t.Helper()
	switch {
	case result.Outcome == v1alpha1.Passed:
	case result.Outcome == v1alpha1.Skipped:
		t.Skip(result.Reason)
	case result.Failure != nil:
		t.Errorf("%s\n%s", result.Statement, result.Failure.Message)
	default:
		t.Errorf("%s\n%s", result.Statement, result.Reason)
	}
}
