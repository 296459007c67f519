package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

func TestAwaitOutage(t *testing.T) {
	refused := errors.New("connection refused")
	for _, test := range []struct {
		name string
		// away is the part of the time in which the server does not respond, and tested when all behaviors are done.
		from, to, tested time.Duration
		lost             bool
		decided          time.Duration
	}{
		{"it always responds", 0, 0, 2 * time.Minute, false, 2 * time.Minute},
		{"it is restarted", 10 * time.Second, 38 * time.Second, 2 * time.Minute, false, 2 * time.Minute},
		{"it ends", 10 * time.Second, time.Hour, 2 * time.Minute, true, 41 * time.Second},
		{"it ends just before all is done", 10 * time.Second, time.Hour, 12 * time.Second, true, 41 * time.Second},
		{"it is restarted just before all is done", 10 * time.Second, 20 * time.Second, 12 * time.Second, false, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, start, done := NewWithT(t), time.Now(), make(chan struct{})
				time.AfterFunc(test.tested, func() { close(done) })

				err := awaitOutage(t.Context(), done, tolerated, func(context.Context) error {
					if at := time.Since(start); at >= test.from && at < test.to {
						return refused
					}
					return nil
				})

				g.Expect(time.Since(start)).To(BeNumerically("~", test.decided, 2*time.Second))
				if !test.lost {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(err).To(And(MatchError(workers.ErrClusterLost), MatchError(ContainSubstring("connection refused"))))
			})
		})
	}
}

func TestAnOutageIsNoVerdict(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	lost := &outage{start.Add(time.Minute), environment.ErrCredentials}
	ctx, lose := context.WithCancelCause(t.Context())
	lose(lost)
	result := func(after time.Duration, outcome v1alpha1.Outcome) v1alpha1.Result {
		return v1alpha1.Result{Start: start.Add(after), Seconds: 10, Outcome: outcome}
	}
	cluster := &clusterRun{
		shared: &sharedEnvironment{ctx: ctx}, report: &v1alpha1.Cluster{},
		results: map[string]v1alpha1.Result{
			"before":  result(0, v1alpha1.Failed),
			"passed":  result(59*time.Second, v1alpha1.Passed),
			"during":  result(59*time.Second, v1alpha1.Failed),
			"after":   result(2*time.Minute, v1alpha1.Deviated),
			"skipped": result(2*time.Minute, v1alpha1.Skipped),
		},
	}

	cluster.noteOutage()

	since := "credentials rejected (401) since " + lost.since.Format(time.TimeOnly)
	g.Expect(cluster.report.Problem).To(Equal(since))
	g.Expect(cluster.results["before"].Outcome).To(Equal(v1alpha1.Failed))
	g.Expect(cluster.results["passed"].Outcome).To(Equal(v1alpha1.Passed))
	for _, id := range []string{"during", "after", "skipped"} {
		g.Expect(cluster.results[id].Outcome).To(Equal(v1alpha1.Errored))
		g.Expect(cluster.results[id].Reason).To(Equal(since))
	}
}
