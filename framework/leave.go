package framework

import (
	"context"
	"net/http"
	"net/url"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leave ends a spec: it hands the evidence to Ginkgo's report and removes what the spec made, holds included. It does
// not wait for the cluster to finish: names are never used twice, and the run's end waits for everything.
func (c *Cluster) leave(ctx ginkgo.SpecContext) {
	ginkgo.AddReportEntry(evidenceEntry, c.evidence(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
	var collections []clearing
	for _, object := range c.created {
		if mapping, err := c.session.client.mapping(object); err == nil {
			collections = appendNew(collections, clearing{mapping, object.GetNamespace()})
		}
	}
	for _, collection := range collections {
		// What cannot be removed now is removed with the run's namespaces, and reported there.
		_ = c.session.watches.client.clear(ctx, collection, c.selector())
	}
}

// evidence is what the spec did and saw, and, if it failed, why things are still there.
func (c *Cluster) evidence() Evidence {
	events, lost := c.session.watches.journal.read(nil)
	evidence := Evidence{Timeline: v1alpha1.Timeline{Requests: c.session.recorder.take()}}
	for _, event := range events {
		evidence.Timeline.Events = append(evidence.Timeline.Events, event.observation())
	}
	if !ginkgo.CurrentSpecReport().Failed() {
		return evidence
	}
	evidence.Explanation = Explain(events)
	evidence.RunError = c.runError
	if lost != nil {
		evidence.RunError = lost.Error()
	}
	return evidence
}

// clearing is one resource in one namespace that is to be cleared of some objects.
type clearing struct {
	mapping   *meta.RESTMapping
	namespace string
}

func appendNew(collections []clearing, collection clearing) []clearing {
	for _, existing := range collections {
		if existing.mapping.Resource == collection.mapping.Resource && existing.namespace == collection.namespace {
			return collections
		}
	}
	return append(collections, collection)
}

// clear deletes the selected objects of one resource, at once and with their dependents, and takes the finalizers off
// those that stay.
func (c *client) clear(ctx context.Context, collection clearing, selector string) error {
	path := collectionPath(collection.mapping.Resource, collection.namespace)
	objects, err := c.list(ctx, path, selector)
	if err != nil || len(objects) == 0 {
		return err
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground)}
	deleted := c.ask(ctx, request{
		verb: http.MethodDelete, path: path, query: url.Values{"labelSelector": {selector}}, body: withKind(now),
	})
	for _, object := range objects {
		one := request{verb: http.MethodDelete, path: path + "/" + object.GetName(), body: withKind(now)}
		if deleted.Err != nil { // deletecollection may be denied where delete is not
			deleted.Err = c.ask(ctx, one).Err
		}
		if len(object.GetFinalizers()) > 0 {
			one.verb, one.contentType, one.body = http.MethodPatch, string(types.MergePatchType), withoutFinalizers
			c.ask(ctx, one)
		}
	}
	return ignoreNotFound(deleted.Err)
}

// withoutFinalizers is a patch that takes all finalizers off an object.
var withoutFinalizers = map[string]any{"metadata": map[string]any{"finalizers": nil}}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
