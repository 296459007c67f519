package framework

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// WatchFrom starts an additional watch for the spec: of an object's kind and namespace, from the options' resourceVersion on. The history
// contains all events of the spec's objects. A connection that breaks before the first resourceVersion ends the spec as errored. The spec
// is skipped when the server does not support the options.
func (c *Cluster) WatchFrom(ctx context.Context, like *Object, options metav1.ListOptions) *History {
	ginkgo.GinkgoHelper()
	collection := c.CollectionOf(ctx, like)
	options.LabelSelector = c.selecting(options.LabelSelector)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	first, response := c.client.Watch(watching, collection, options)
	if response.Err != nil {
		stop()
		if apierrors.IsInvalid(response.Err) {
			ginkgo.Skip("the server does not support this watch: " + response.Message())
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

// exact returns the resourceVersion at which a watch starts; empty when the server chooses it.
func exact(options metav1.ListOptions) string {
	if options.ResourceVersion == "0" || options.SendInitialEvents != nil {
		return ""
	}
	return options.ResourceVersion
}

// AwaitDeleted waits until an object was deleted, and returns it as in its DELETED event.
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

// selecting restricts a label selector to this spec's objects.
func (c *Cluster) selecting(selector string) string {
	return strings.Trim(c.selector()+","+selector, ",")
}
