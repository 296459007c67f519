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

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Source begins a watch from a resourceVersion on.
type Source func(ctx context.Context, version string) (watch.Interface, error)

// follower writes down the events of one watch after the other, each from where the one before ended. client-go's RetryWatcher
// does the same, but lets a second pass in between, in which a history shows nothing of what happens.
type follower struct {
	journal *Journal
	begin   Source
	// version is that of the last event: the next watch begins there. There is no next one where it is empty: what a watch shows
	// that begins at whatever the server likes stands in no order.
	version string
	// onChange is told whether there is a watch now.
	onChange func(whole bool)
	// stop ends it; begun gets the server's response to the first watch; interrupted says that there is no watch now. All are for
	// who holds several.
	stop        context.CancelFunc
	begun       chan client.Response
	interrupted bool
}

// pauses are the times between watches that do not come about.
func pauses() wait.DelayFunc {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 8, Jitter: 0.1, Cap: time.Second}.DelayFunc()
}

// whileGood is how long a watch lives that did come about: after it the next one is not waited for.
const whileGood = time.Second / 2

// Follow writes down what happens from a resourceVersion on, until the context ends. It fails when what happened cannot be
// known without a gap any more.
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
			break // nobody wants to know more
		}
		switch {
		case f.version == "" || final(err):
			return fmt.Errorf("the watch on %s was lost: %w", collection.Resource.Resource, orEnded(err))
		case time.Since(began) > whileGood:
			pause = pauses()
		}
		select {
		case <-time.After(pause()):
		case <-ctx.Done():
		}
	}
	return nil //nolint:nilerr // it was told to end
}

// final says that a watch from the same resourceVersion on will not come about later either.
func final(err error) bool {
	return apierrors.IsGone(err) || apierrors.IsResourceExpired(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

var errEnded = errors.New("it ended and cannot be resumed")

// orEnded is why a watch ended; it may not have said.
func orEnded(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// note writes events down until the watch ends, and returns the error that it ended with, if any.
func (f *follower) note(events watch.Interface) error {
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, is := event.Object.(*unstructured.Unstructured)
		if !is {
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
