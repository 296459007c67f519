package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
)

const (
	// probeInterval is the time between two probes of an API server.
	probeInterval = time.Second
	// tolerated is how long an API server may not respond. A restart takes less, and behaviors are retried meanwhile.
	// It is longer on a slow cluster, up to maxTolerated.
	tolerated, maxTolerated = 30 * time.Second, time.Minute
	// noticed is the duration from which an outage makes failures in that time errors. The timeouts of all behaviors allow for less.
	noticed = 5 * time.Second
)

// outage describes when and why an API server did not respond.
type outage struct {
	since time.Time
	// until is when it responded again; zero if the run ended before that.
	until time.Time
	cause error
}

func (o *outage) Error() string {
	when := "since " + o.since.Format(time.TimeOnly)
	if !o.until.IsZero() {
		when = "from " + o.since.Format(time.TimeOnly) + " to " + o.until.Format(time.TimeOnly)
	}
	what, cause := "no response", o.cause
	for _, known := range []error{environment.ErrCredentials, environment.ErrStorage} {
		if errors.Is(o.cause, known) {
			what, cause = known.Error(), errors.Unwrap(o.cause)
		}
	}
	if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
		return what + " " + when
	}
	return fmt.Sprintf("%s %s (%v)", what, when, cause)
}

func (o *outage) Is(other error) bool { return other == workers.ErrClusterLost }

// affects reports whether a result shows the outage and not what the cluster does.
func (o *outage) affects(result v1alpha1.Result) bool {
	ended := result.Start.Add(time.Duration(result.Seconds * float64(time.Second)))
	switch {
	case result.Outcome == v1alpha1.Passed || ended.Before(o.since):
		return false
	case o.until.IsZero():
		return true
	}
	failed := result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Deviated
	return failed && result.Start.Before(o.until)
}

// awaitOutage probes an API server until it has not responded for too long, and returns the outage. It returns nil when the context ends,
// and when the server responds after done was closed, because there was no outage then. It calls shorter with each outage that ended before.
func awaitOutage(
	ctx context.Context, done <-chan struct{}, tolerated time.Duration, responds func(context.Context) error, shorter func(*outage),
) *outage {
	last, failed := time.Now(), error(nil)
	for {
		began, ended := time.Now(), isClosed(done)
		err := responds(ctx)
		until := done
		if err == nil && failed != nil && began.Sub(last) >= noticed {
			shorter(&outage{last, began, failed})
		}
		switch {
		case err == nil && ended:
			return nil
		case err == nil:
			last = began
		case time.Since(last) > tolerated:
			return &outage{since: last, cause: err}
		default:
			until = nil // the current state is not known yet
		}
		failed = err
		select {
		case <-ctx.Done():
			return nil
		case <-until:
		case <-time.After(probeInterval):
		}
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// watch starts to probe the API server, once for all its resources. The returned context ends when the server is lost, with the outage as
// the cause.
func (s *sharedEnvironment) watch(ctx context.Context, slowness float64) context.Context {
	s.watching.Do(func() {
		lasting, lose := context.WithCancelCause(ctx)
		s.ctx, s.done, s.watched = lasting, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(s.watched)
			tolerated := min(time.Duration(float64(tolerated)*max(slowness, 1)), maxTolerated)
			shorter := func(over *outage) { s.shorter = append(s.shorter, over) }
			if lost := awaitOutage(ctx, s.done, tolerated, s.made.Responds, shorter); lost != nil {
				lose(lost)
			}
		}()
	})
	return s.ctx
}

// unwatch stops probing. It waits until it is known whether a server that does not respond is lost.
func (s *sharedEnvironment) unwatch() {
	s.watching.Do(func() {}) // if it was never started
	if s.done != nil {
		s.unwatching.Do(func() { close(s.done) })
		<-s.watched
	}
}

// outage returns how the API server was lost; nil if it was not.
func (s *sharedEnvironment) outage() *outage {
	lost := (*outage)(nil)
	if s.ctx != nil {
		errors.As(context.Cause(s.ctx), &lost)
	}
	return lost
}

// noteOutages records when the API server did not respond: behaviors that did not pass then count as errored. Nothing may watch the server
// any longer.
func (c *clusterRun) noteOutages() {
	outages := c.shared.shorter
	if lost := c.shared.outage(); lost != nil {
		c.report.Problem = lost.Error()
		outages = append(outages, lost)
	}
	for id, result := range c.results {
		for _, outage := range outages {
			if outage.affects(result) {
				result.Outcome, result.Reason, result.Failure = v1alpha1.Errored, outage.Error(), nil
				c.results[id] = result
			}
		}
	}
}
