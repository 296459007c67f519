package journal

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// configMaps is the collection to follow.
var configMaps = client.Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap"}

// at returns an event of an object at a resourceVersion.
func at(event watch.EventType, version string) watch.Event {
	object := &unstructured.Unstructured{}
	object.SetResourceVersion(version)
	return watch.Event{Type: event, Object: object}
}

// ends returns an event that ends a watch with a status.
func ends(err *apierrors.StatusError) watch.Event {
	return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
}

// script is a Source of watches that each deliver some events and end, or fail. The one after the last closes all and stays open until the
// context ends.
type script struct {
	mu    sync.Mutex
	turns []turn
	// from are the requested resourceVersions. all is closed when all turns have been requested.
	from []string
	all  chan struct{}
}

// turn is the result of one watch.
type turn struct {
	events []watch.Event
	err    error
}

func (s *script) begin(ctx context.Context, version string) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = append(s.from, version)
	events := make(chan watch.Event, 10)
	if len(s.turns) == 0 {
		close(s.all)
		context.AfterFunc(ctx, func() { close(events) })
		return watch.NewProxyWatcher(events), nil
	}
	next := s.turns[0]
	s.turns = s.turns[1:]
	if next.err != nil {
		return nil, next.err
	}
	for _, event := range next.events {
		events <- event
	}
	close(events)
	return watch.NewProxyWatcher(events), nil
}

// versions returns the resourceVersions of a journal's events.
func versions(t *testing.T, kept *Journal) []string {
	t.Helper()
	events, err := kept.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, event := range events {
		versions = append(versions, event.Object.GetResourceVersion())
	}
	return versions
}

func TestWatches_Resume(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	watches := &script{all: make(chan struct{}), turns: []turn{
		{events: []watch.Event{at(watch.Added, "8"), at(watch.Modified, "9")}},
		{err: apierrors.NewTooManyRequests("busy", 0)},
		{err: errors.New("connection refused")},
		{events: []watch.Event{at(watch.Bookmark, "12")}},
		{events: []watch.Event{at(watch.Deleted, "13"), ends(apierrors.NewInternalError(errors.New("storage is away")))}},
	}}
	kept := &Journal{}
	var whole []bool
	f := follower{journal: kept, begin: watches.begin, version: "7", onChange: func(now bool) { whole = append(whole, now) }}
	ended := make(chan error)
	go func() { ended <- f.follow(ctx, configMaps) }()

	g.Eventually(watches.all).Should(BeClosed())
	stop()
	g.Eventually(ended).Should(Receive(BeNil()), "it was told to end")

	g.Expect(watches.from).To(Equal([]string{"7", "9", "9", "9", "12", "13"}))
	g.Expect(versions(t, kept)).To(Equal([]string{"8", "9", "13"}), "a bookmark is no event")
	g.Expect(whole).To(Equal([]bool{true, false, false, false, true, false, true, false, true, false}), "with a watch, and without")
}

func TestWatches_Lost(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for _, test := range []struct {
		name, version string
		first         turn
		lost          string
	}{
		{"too old", "7", turn{events: []watch.Event{ends(apierrors.NewResourceExpired("too old resource version"))}}, "too old resource version"},
		{"not allowed", "7", turn{err: apierrors.NewForbidden(resource, "", errors.New("not you"))}, "not you"},
		{"credentials that expired", "7", turn{err: apierrors.NewUnauthorized("who are you")}, "who are you"},
		{"without a version to go on from", "", turn{events: []watch.Event{at(watch.Added, "8")}}, "it ended and cannot be resumed"},
		{"without a version, for a reason", "", turn{err: apierrors.NewTooManyRequests("busy", 0)}, "busy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			watches := &script{all: make(chan struct{}), turns: []turn{test.first}}
			kept := &Journal{}

			lost := kept.Follow(t.Context(), configMaps, test.version, watches.begin)

			g.Expect(lost).To(MatchError(And(HavePrefix("the watch on configmaps was lost: "), ContainSubstring(test.lost))))
			g.Expect(watches.from).To(Equal([]string{test.version}), "it is not asked for again")
		})
	}
}

func TestWatches_NoObject(t *testing.T) {
	g := NewWithT(t)
	kept := &Journal{}
	f := follower{journal: kept, version: "7"}
	events := make(chan watch.Event, 2)
	events <- watch.Event{Type: watch.Added, Object: &metav1.Status{Code: http.StatusOK}}
	events <- at(watch.Added, "8")
	close(events)

	g.Expect(f.note(watch.NewProxyWatcher(events))).To(Succeed())

	g.Expect(versions(t, kept)).To(Equal([]string{"8"}))
	g.Expect(f.version).To(Equal("8"))
}
