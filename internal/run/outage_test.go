package run

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
)

func TestAwaitOutage(t *testing.T) {
	refused := errors.New("connection refused")
	for _, test := range []struct {
		name string
		// away is the time in which the server does not respond, and tested when all behaviors are done.
		from, to, tested time.Duration
		lost, noticed    bool
		decided          time.Duration
	}{
		{"it always responds", 0, 0, 2 * time.Minute, false, false, 2 * time.Minute},
		{"one probe fails", 10 * time.Second, 11 * time.Second, 2 * time.Minute, false, false, 2 * time.Minute},
		{"it is restarted", 10 * time.Second, 38 * time.Second, 2 * time.Minute, false, true, 2 * time.Minute},
		{"it ends", 10 * time.Second, time.Hour, 2 * time.Minute, true, false, 41 * time.Second},
		{"it ends just before all is done", 10 * time.Second, time.Hour, 12 * time.Second, true, false, 41 * time.Second},
		{"it is restarted just before all is done", 10 * time.Second, 20 * time.Second, 12 * time.Second, false, true, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, start, done := NewWithT(t), time.Now(), make(chan struct{})
				time.AfterFunc(test.tested, func() { close(done) })

				var shorter []*outage
				lost := awaitOutage(t.Context(), done, tolerated, func(context.Context) error {
					if at := time.Since(start); at >= test.from && at < test.to {
						return refused
					}
					return nil
				}, func(over *outage) { shorter = append(shorter, over) })

				g.Expect(time.Since(start)).To(BeNumerically("~", test.decided, 2*time.Second))
				g.Expect(lost != nil).To(Equal(test.lost))
				g.Expect(len(shorter) == 1).To(Equal(test.noticed))
				if test.noticed {
					g.Expect(shorter[0].since.Sub(start)).To(BeNumerically("~", test.from, time.Second))
					g.Expect(shorter[0].until.Sub(start)).To(BeNumerically("~", test.to, time.Second))
				}
				if test.lost {
					g.Expect(lost).To(And(MatchError(workers.ErrClusterLost), MatchError(ContainSubstring("connection refused"))))
				}
			})
		})
	}
}

func TestOutage_Results(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	lost := &outage{since: start.Add(time.Minute), cause: environment.ErrCredentials}
	shorter := &outage{start.Add(20 * time.Second), start.Add(26 * time.Second), context.DeadlineExceeded}
	ctx, lose := context.WithCancelCause(t.Context())
	lose(lost)
	result := func(after time.Duration, outcome v1alpha1.Outcome) v1alpha1.Result {
		return v1alpha1.Result{Start: start.Add(after), Seconds: 10, Outcome: outcome}
	}
	cluster := &clusterRun{
		shared: &sharedEnvironment{ctx: ctx, shorter: []*outage{shorter}}, report: &v1alpha1.Cluster{},
		results: map[string]v1alpha1.Result{
			"before":  result(0, v1alpha1.Failed),
			"paused":  result(15*time.Second, v1alpha1.Failed),
			"unmet":   result(15*time.Second, v1alpha1.Skipped),
			"between": result(27*time.Second, v1alpha1.Failed),
			"passed":  result(59*time.Second, v1alpha1.Passed),
			"during":  result(59*time.Second, v1alpha1.Failed),
			"after":   result(2*time.Minute, v1alpha1.Deviated),
			"skipped": result(2*time.Minute, v1alpha1.Skipped),
		},
	}

	cluster.noteOutages()

	since := "credentials rejected (401) since " + lost.since.Format(time.TimeOnly)
	g.Expect(cluster.report.Problem).To(Equal(since))
	for id, outcome := range map[string]v1alpha1.Outcome{
		"before": v1alpha1.Failed, "unmet": v1alpha1.Skipped, "between": v1alpha1.Failed, "passed": v1alpha1.Passed,
	} {
		g.Expect(cluster.results[id].Outcome).To(Equal(outcome), id)
	}
	for _, id := range []string{"during", "after", "skipped"} {
		g.Expect(cluster.results[id].Outcome).To(Equal(v1alpha1.Errored))
		g.Expect(cluster.results[id].Reason).To(Equal(since))
	}
	g.Expect(cluster.results["paused"].Outcome).To(Equal(v1alpha1.Errored))
	g.Expect(cluster.results["paused"].Reason).To(MatchRegexp(`^no response from \S+ to \S+$`))
}

func TestTolerated_Documented(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(page)).To(ContainSubstring("has failed for %g s, or for up to %g s on a slow cluster", tolerated.Seconds(), maxTolerated.Seconds()))
}
