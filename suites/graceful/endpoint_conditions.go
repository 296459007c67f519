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
	// endpointTerminating endpoints are of pods that are being deleted, and not ready.
	endpointTerminating = endpointCondition{"terminating and not ready", func(c discoveryv1.EndpointConditions) bool {
		return !ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false)
	}}
)

// The conditions of the endpoints of pods that are being deleted (KEP-1672).
var (
	// endpointServing endpoints are of pods that are being deleted and still say that they are ready: not ready themselves,
	// and serving.
	endpointServing = endpointCondition{"terminating, not ready and serving", func(c discoveryv1.EndpointConditions) bool {
		return endpointTerminating.is(c) && ptr.Deref(c.Serving, false)
	}}
	// endpointNotServing endpoints are of pods that are being deleted and no longer say that they are ready.
	endpointNotServing = endpointCondition{"terminating, not ready and not serving", func(c discoveryv1.EndpointConditions) bool {
		return endpointTerminating.is(c) && !ptr.Deref(c.Serving, true)
	}}
	// endpointPublished endpoints are of pods that are being deleted and still say that they are ready, and ready nevertheless.
	endpointPublished = endpointCondition{"terminating, ready and serving", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false) && ptr.Deref(c.Serving, false)
	}}
	// endpointPublishedNotServing endpoints are of pods that are being deleted and no longer say that they are ready, and ready
	// nevertheless.
	endpointPublishedNotServing = endpointCondition{"terminating, ready and not serving", func(c discoveryv1.EndpointConditions) bool {
		return ptr.Deref(c.Ready, false) && ptr.Deref(c.Terminating, false) && !ptr.Deref(c.Serving, true)
	}}
)

// haveEndpoint matches an EndpointSlice in which the endpoint of a pod is in some condition.
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
