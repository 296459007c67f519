package framework

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// The conditions of the endpoints of pods that are being deleted (KEP-1672).
var (
	// EndpointServing endpoints are of pods that are being deleted and still say that they are ready: not ready themselves,
	// and serving.
	EndpointServing = EndpointCondition{"terminating, not ready and serving", func(c discoveryv1.EndpointConditions) bool {
		return EndpointTerminating.is(c) && ptr.Deref(c.Serving, false)
	}}
	// EndpointNotServing endpoints are of pods that are being deleted and no longer say that they are ready.
	EndpointNotServing = EndpointCondition{"terminating, not ready and not serving", func(c discoveryv1.EndpointConditions) bool {
		return EndpointTerminating.is(c) && !ptr.Deref(c.Serving, true)
	}}
	// EndpointPublished endpoints are of pods that are being deleted and still say that they are ready, and ready all the same.
	EndpointPublished = EndpointCondition{"terminating, ready and serving", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false) && ptr.Deref(c.Serving, false)
	}}
	// EndpointPublishedNotServing endpoints are of pods that are being deleted and no longer say that they are ready, and ready
	// all the same.
	EndpointPublishedNotServing = EndpointCondition{"terminating, ready and not serving", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false) && !ptr.Deref(c.Serving, true)
	}}
)
