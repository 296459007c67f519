package graceful

import (
	"fmt"

	. "github.com/deletion-conformance/deletion-conformance/framework"

	"github.com/onsi/gomega/types"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// endpointCondition is a combination of the conditions of an endpoint.
type endpointCondition struct {
	name string
	is   func(discoveryv1.EndpointConditions) bool
}

var (
	// endpointReady endpoints are ready and not terminating.
	endpointReady = endpointCondition{"ready", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && !ptr.Deref(c.Terminating, false)
	}}
	// endpointTerminating endpoints belong to pods that are being deleted, and are not ready.
	endpointTerminating = endpointCondition{"terminating and not ready", func(c discoveryv1.EndpointConditions) bool {
		return !ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false)
	}}
)

// The conditions of the endpoints of pods that are being deleted (KEP-1672).
var (
	// endpointServing endpoints belong to terminating pods that are still ready: they are not ready, but serving.
	endpointServing = endpointCondition{"terminating, not ready and serving", func(c discoveryv1.EndpointConditions) bool {
		return endpointTerminating.is(c) && ptr.Deref(c.Serving, false)
	}}
	// endpointNotServing endpoints belong to terminating pods that are no longer ready.
	endpointNotServing = endpointCondition{"terminating, not ready and not serving", func(c discoveryv1.EndpointConditions) bool {
		return endpointTerminating.is(c) && !ptr.Deref(c.Serving, true)
	}}
	// endpointPublished endpoints belong to terminating pods that are still ready, with publishNotReadyAddresses.
	endpointPublished = endpointCondition{"terminating, ready and serving", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false) && ptr.Deref(c.Serving, false)
	}}
	// endpointPublishedNotServing endpoints belong to terminating pods that are no longer ready, with publishNotReadyAddresses.
	endpointPublishedNotServing = endpointCondition{"terminating, ready and not serving", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false) && !ptr.Deref(c.Serving, true)
	}}
)

// haveEndpoint matches an EndpointSlice in which the endpoint of a pod has a condition.
func haveEndpoint(pod *Object, condition endpointCondition) types.GomegaMatcher {
	return Property(fmt.Sprintf("have an endpoint of pod %q that is %s", pod.GetName(), condition.name), func(object *Object) bool {
		for _, endpoint := range endpointsOf(object) {
			if endpoint.TargetRef != nil && endpoint.TargetRef.UID == pod.GetUID() && condition.is(endpoint.Conditions) {
				return true
			}
		}
		return false
	})
}

// endpointsOf are the endpoints of an EndpointSlice.
func endpointsOf(slice *Object) []discoveryv1.Endpoint {
	typed := discoveryv1.EndpointSlice{}
	// What cannot be read has no endpoints.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(slice.Object, &typed)
	return typed.Endpoints
}
