package framework

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// WatchFrom begins a watch of the spec's own, beside those that every spec has: of an object's kind and namespace, from
// the options' resourceVersion on. The history is all that it delivers of what the spec made. Where its connection breaks before
// it has said a resourceVersion to go on from, that is an error of the run. The spec is skipped where the server cannot watch as
// the options ask.
func (c *Cluster) WatchFrom(ctx context.Context, like *Object, options metav1.ListOptions) *History {
	ginkgo.GinkgoHelper()
	collection := c.CollectionOf(ctx, like)
	options.LabelSelector = c.selecting(options.LabelSelector)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	first, response := c.client.Watch(watching, collection, options)
	if response.Err != nil {
		stop()
		if apierrors.IsInvalid(response.Err) {
			ginkgo.Skip("the server cannot watch so: " + response.Message())
		}
		Require(c.Check(ctx, response))
	}
	begin := func(ctx context.Context, version string) (watch.Interface, error) {
		if begun := first; begun != nil {
			first = nil
			return begun, nil
		}
		options.ResourceVersion, options.ResourceVersionMatch, options.SendInitialEvents = version, "", nil
		next, response := c.client.Watch(ctx, collection, options)
		return next, response.Err
	}
	history := &History{journal: &journal.Journal{}, whole: true}
	if c.session.Watches.Covers(collection) {
		history.before = c.session.Watches.Journal
	}
	c.watches = append(c.watches, history)
	go func() {
		if lost := history.journal.Follow(watching, collection, exact(options), begin); lost != nil {
			history.journal.Fail(lost)
		}
	}()
	ginkgo.DeferCleanup(stop)
	return history
}

// exact is the resourceVersion that a watch begins at; empty where the options leave that to the server.
func exact(options metav1.ListOptions) string {
	if options.ResourceVersion == "0" || options.SendInitialEvents != nil {
		return ""
	}
	return options.ResourceVersion
}

// AwaitDeleted waits until an object was seen to be gone, and returns it as its DELETED event carries it.
func AwaitDeleted(ctx context.Context, c *Cluster, object *Object) *Object {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, c.History(object)).Should(HaveObserved(Deleted(object)))
	events, err := c.History(object).Events()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, event := range events {
		if event.Type == watch.Deleted {
			return event.Object
		}
	}
	return nil
}

// selecting is a label selector narrowed to what this spec made.
func (c *Cluster) selecting(selector string) string {
	return strings.Trim(c.selector()+","+selector, ",")
}
