// Package causes recognizes in the timeline of a failed spec what the API server did wrong. Many behaviors rely on the same few promises of
// an API server, so that one fault of it fails many of them, each with another message.
package causes

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// The causes. They name no objects, so that they are the same in all behaviors.
const (
	FinalizersNotStored = "finalizers are not kept: a written object does not have those of the request"
	OwnersNotStored     = "owner references are not kept: a created object does not have those of the request"
	RemovedWhileHeld    = "finalizers are ignored: an object is removed while it has some"
	DryRunIgnored       = "dry-run is ignored: a dry-run changes objects"
	CollectionIgnored   = "deletecollection is ignored: it is accepted and deletes no object"
	UIDIgnored          = "preconditions are ignored: a delete with another uid is accepted"
	PolicyIgnored       = "propagation policies are ignored: a deleted object does not get the finalizer of the policy"
)

// Of returns the cause of a failure; empty if none is recognized. A spec ends with its first failed assertion, so the fault that was
// observed last is the cause. Finalizers are those with a prefix: the ones that no other client removes.
func Of(timeline v1alpha1.Timeline, prefix string) string {
	e := newRecord(timeline, prefix)
	last := fault{}
	for _, found := range slices.Concat(e.notStored(), e.removed(), e.collections(), e.preconditions()) {
		if !found.at.Before(last.at) {
			last = found
		}
	}
	if last.cause == "" { // a server that does not keep finalizers does not keep those of policies either
		return e.policies()
	}
	return last.cause
}

// fault is a cause, and when it was observed.
type fault struct {
	at    time.Time
	cause string
}

// record is a timeline by object.
type record struct {
	requests []request
	events   map[types.UID][]v1alpha1.Observation
	prefix   string
}

// request is a request that the server accepted.
type request struct {
	v1alpha1.Request
	// sent are the parts of the body, or else of the query.
	sent struct {
		Metadata          metav1.ObjectMeta
		DryRun            []string
		PropagationPolicy string
		Preconditions     metav1.Preconditions
	}
}

func newRecord(timeline v1alpha1.Timeline, prefix string) record {
	e := record{events: map[types.UID][]v1alpha1.Observation{}, prefix: prefix}
	for _, event := range timeline.Events {
		e.events[event.UID] = append(e.events[event.UID], event)
	}
	for _, sent := range timeline.Requests {
		if sent.Object == nil || sent.Status < http.StatusOK || sent.Status >= http.StatusMultipleChoices || sent.Verb == http.MethodGet {
			continue
		}
		accepted := request{Request: sent}
		_ = json.Unmarshal([]byte(sent.Body), &accepted.sent) // JSON patches and other media types have no such fields
		if parsed, err := url.Parse(sent.Path); err == nil {
			query := parsed.Query()
			accepted.sent.DryRun = append(accepted.sent.DryRun, query["dryRun"]...)
			accepted.sent.PropagationPolicy = cmp.Or(accepted.sent.PropagationPolicy, query.Get("propagationPolicy"))
		}
		e.requests = append(e.requests, accepted)
	}
	return e
}

func (r request) isDryRun() bool { return len(r.sent.DryRun) > 0 }

// isOf reports whether a request can be about an object: it names the object, or it is about the collection.
func (r request) isOf(object v1alpha1.Observation) bool {
	if r.Object.Name == "" {
		return r.Object.Group == object.Group && (r.Object.Kind == "" || r.Object.Kind == object.Kind) && r.Object.Namespace == object.Namespace
	}
	return r.Object.UID == object.UID
}

// held are the finalizers that no other client removes.
func (e record) held(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool { return !strings.HasPrefix(finalizer, e.prefix) })
}

// notStored finds writes whose finalizers or owner references no later state of the object has.
func (e record) notStored() []fault {
	var faults []fault
	for _, write := range e.requests {
		later := slices.DeleteFunc(slices.Clone(e.events[write.Object.UID]), func(event v1alpha1.Observation) bool { return event.At.Before(write.At) })
		if write.isDryRun() || write.Verb == http.MethodDelete || write.Subresource != "" || len(later) == 0 {
			continue
		}
		for _, finalizer := range e.held(write.sent.Metadata.Finalizers) {
			has := func(event v1alpha1.Observation) bool { return slices.Contains(event.Finalizers, finalizer) }
			if !slices.ContainsFunc(later, has) {
				faults = append(faults, fault{later[0].At, FinalizersNotStored})
			}
		}
		if write.Verb == http.MethodPost && len(write.sent.Metadata.OwnerReferences) > 0 && len(later[0].Owners) == 0 {
			faults = append(faults, fault{later[0].At, OwnersNotStored})
		}
	}
	return faults
}

// removed finds objects whose deletion started without a request, after a dry-run, and objects that ended without the removal of their
// finalizers.
func (e record) removed() []fault {
	var faults []fault
	for _, events := range e.events {
		ends := slices.IndexFunc(events, isDeletion)
		if ends < 0 {
			continue
		}
		begun, last := events[ends], events[len(events)-1]
		deleted := e.sent(begun, begun.At, func(r request) bool {
			return !r.isDryRun() && (r.Verb == http.MethodDelete || r.Subresource == "eviction")
		})
		written := e.sent(last, last.At, func(r request) bool {
			return !r.isDryRun() && slices.Contains([]string{http.MethodPut, http.MethodPatch}, r.Verb)
		})
		switch wasHeld := last.Type == string(watch.Deleted) && len(e.held(last.Finalizers)) > 0 && !written; {
		case !deleted && len(begun.Owners) == 0 && e.sent(begun, begun.At, request.isDryRun), wasHeld && e.sent(last, last.At, request.isDryRun):
			faults = append(faults, fault{last.At, DryRunIgnored})
		case wasHeld:
			faults = append(faults, fault{last.At, RemovedWhileHeld})
		}
	}
	return faults
}

// isDeletion reports whether an object is being deleted, or is gone.
func isDeletion(event v1alpha1.Observation) bool {
	return event.DeletionTimestamp != nil || event.Type == string(watch.Deleted)
}

// sent reports whether such a request about an object was sent before some time.
func (e record) sent(object v1alpha1.Observation, before time.Time, such func(request) bool) bool {
	return slices.ContainsFunc(e.requests, func(r request) bool { return r.At.Before(before) && r.isOf(object) && such(r) })
}

// collections finds deletecollections after which no deletion of an object of the collection starts although there are some.
func (e record) collections() []fault {
	var faults []fault
	for _, deletion := range e.requests {
		if deletion.Verb != http.MethodDelete || deletion.Object.Name != "" || deletion.isDryRun() {
			continue
		}
		left, begun := 0, 0
		for _, events := range e.events {
			at := slices.IndexFunc(events, isDeletion)
			switch {
			case !deletion.isOf(events[0]) || events[0].Canary || events[0].At.After(deletion.At):
			case at < 0:
				left++
			case events[at].At.After(deletion.At):
				begun++
			}
		}
		if left > 0 && begun == 0 {
			faults = append(faults, fault{deletion.At, CollectionIgnored})
		}
	}
	return faults
}

// preconditions finds accepted deletes that require another uid than that of the object.
func (e record) preconditions() []fault {
	var faults []fault
	for _, deletion := range e.requests {
		required := deletion.sent.Preconditions.UID
		if deletion.Verb == http.MethodDelete && required != nil && *required != deletion.Object.UID && (deletion.Object.UID != "" || deletion.Object.Name == "") {
			faults = append(faults, fault{deletion.At, UIDIgnored})
		}
	}
	return faults
}

// finalizerOf are the finalizers with which the API server stores a propagation policy.
var finalizerOf = map[string]string{
	string(metav1.DeletePropagationOrphan): metav1.FinalizerOrphanDependents, string(metav1.DeletePropagationForeground): metav1.FinalizerDeleteDependents,
}

// policies returns the cause of accepted deletes whose policy the object never shows.
func (e record) policies() string {
	for _, deletion := range e.requests {
		finalizer := finalizerOf[deletion.sent.PropagationPolicy]
		events := e.events[deletion.Object.UID]
		if deletion.Verb != http.MethodDelete || finalizer == "" || deletion.isDryRun() || !slices.ContainsFunc(events, isDeletion) {
			continue
		}
		if !slices.ContainsFunc(events, func(event v1alpha1.Observation) bool { return slices.Contains(event.Finalizers, finalizer) }) {
			return PolicyIgnored
		}
	}
	return ""
}
