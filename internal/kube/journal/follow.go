package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Source starts a watch at a resourceVersion.
type Source func(ctx context.Context, version string) (watch.Interface, error)

// follower records the events of consecutive watches. Each starts where the previous one ended. client-go's RetryWatcher pauses for a
// second in between, during which a history would show nothing.
type follower struct {
	journal *Journal
	begin   Source
	// version is that of the last event, where the next watch starts. When it is empty there is no next watch, because events of a watch
	// without a start have no order.
	version string
	// onChange is called with whether a watch is established.
	onChange func(whole bool)
	// stop ends it. begun receives the response to the first watch. interrupted is set while no watch is established. They are for owners
	// of several followers.
	stop        context.CancelFunc
	begun       chan client.Response
	interrupted bool
}

// pauses returns the delays between attempts to start a watch.
func pauses() wait.DelayFunc {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 8, Jitter: 0.1, Cap: time.Second}.DelayFunc()
}

// healthyAfter is the lifetime after which a watch counts as healthy. The next one then starts without a delay.
const healthyAfter = time.Second / 2

// Follow records events from a resourceVersion on, until the context ends. It fails when events may have been missed.
func (j *Journal) Follow(ctx context.Context, collection client.Collection, version string, begin Source) error {
	f := follower{journal: j, begin: begin, version: version, onChange: func(bool) {}}
	return f.follow(ctx, collection)
}

func (f *follower) follow(ctx context.Context, collection client.Collection) error {
	pause := pauses()
	for ctx.Err() == nil {
		began := time.Now()
		events, err := f.begin(ctx, f.version)
		if err == nil {
			f.onChange(true)
			err = f.note(events)
			events.Stop()
		}
		f.onChange(false)
		if ctx.Err() != nil {
			break // no longer needed
		}
		switch {
		case f.version == "" || final(err):
			return fmt.Errorf("the watch on %s was lost: %w", collection.Resource.Resource, orEnded(err))
		case time.Since(began) > healthyAfter:
			pause = pauses()
		}
		select {
		case <-time.After(pause()):
		case <-ctx.Done():
		}
	}
	return nil //nolint:nilerr // stopped by the context
}

// final reports whether a watch from the same resourceVersion cannot succeed later.
func final(err error) bool {
	return apierrors.IsGone(err) || apierrors.IsResourceExpired(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

var errEnded = errors.New("it ended and cannot be resumed")

// orEnded returns the reason why a watch ended, which may be unknown.
func orEnded(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// note records events until the watch ends, and returns the watch's error, if any.
func (f *follower) note(events watch.Interface) error {
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if f.version != "" {
			f.version = object.GetResourceVersion()
		}
		if event.Type != watch.Bookmark {
			f.journal.Add(Event{At: time.Now(), Type: event.Type, Object: object})
		}
	}
	return nil
}
