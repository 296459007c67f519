package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

const (
	// probeInterval is the time between two probes of an API server, and probeTimeout how long one may take.
	probeInterval, probeTimeout = time.Second, 5 * time.Second
	// tolerated is how long an API server may not respond. One that is restarted takes less, and behaviors are retried then.
	tolerated = 30 * time.Second
)

// outage says from when on an API server did not respond, and why.
type outage struct {
	since time.Time
	cause error
}

func (o *outage) Error() string {
	since := o.since.Format(time.TimeOnly)
	if errors.Is(o.cause, environment.ErrCredentials) {
		return fmt.Sprintf("%v since %s", o.cause, since)
	}
	if errors.Is(o.cause, context.DeadlineExceeded) {
		return "no response since " + since
	}
	return fmt.Sprintf("no response since %s (%v)", since, o.cause)
}

func (o *outage) Is(other error) bool { return other == workers.ErrClusterLost }

// awaitOutage probes an API server until it has not responded for too long, and returns that. It returns nil when the context ends, and
// when the server responds after done was closed: what was seen until then was no outage.
func awaitOutage(ctx context.Context, done <-chan struct{}, tolerated time.Duration, responds func(context.Context) error) error {
	last := time.Now()
	for {
		began, ended := time.Now(), isClosed(done)
		err := responds(ctx)
		until := done
		switch {
		case err == nil && ended:
			return nil
		case err == nil:
			last = began
		case time.Since(last) > tolerated:
			return &outage{last, err}
		default:
			until = nil // it is not known yet what this is
		}
		select {
		case <-ctx.Done():
			return nil
		case <-until:
		case <-time.After(probeInterval):
		}
	}
}

// responds probes the API server once.
func (s *sharedEnvironment) responds(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return s.made.Responds(limited)
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// watch watches the API server from now on, once for all resources that are tested there. The context that it returns ends when the
// server is lost, with the outage as the cause.
func (s *sharedEnvironment) watch(ctx context.Context, slowness float64) context.Context {
	s.watching.Do(func() {
		lasting, lose := context.WithCancelCause(ctx)
		s.ctx, s.done, s.watched = lasting, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(s.watched)
			tolerated := time.Duration(float64(tolerated) * max(slowness, 1))
			if lost := awaitOutage(ctx, s.done, tolerated, s.responds); lost != nil {
				lose(lost)
			}
		}()
	})
	return s.ctx
}

// unwatch ends the watching. It waits until it is known whether a server that does not respond is lost.
func (s *sharedEnvironment) unwatch() {
	s.watching.Do(func() {}) // where it was never begun
	if s.done != nil {
		s.unwatching.Do(func() { close(s.done) })
		<-s.watched
	}
}

// outage is how the API server was lost; nil if it was not.
func (s *sharedEnvironment) outage() *outage {
	lost := (*outage)(nil)
	if s.ctx != nil {
		errors.As(context.Cause(s.ctx), &lost)
	}
	return lost
}

// noteOutage notes that the API server was lost: what did not pass from then on is no verdict.
func (c *clusterRun) noteOutage() {
	lost := c.shared.outage()
	if lost == nil {
		return
	}
	c.report.Problem = lost.Error()
	for id, result := range c.results {
		ended := result.Start.Add(time.Duration(result.Seconds * float64(time.Second)))
		if result.Outcome != v1alpha1.Passed && !ended.Before(lost.since) {
			result.Outcome, result.Reason, result.Failure = v1alpha1.Errored, lost.Error(), nil
			c.results[id] = result
		}
	}
}
