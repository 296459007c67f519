// Package history contains the requests and observations of the clients of one round of exploration. Package checks, and those that it imports, check
// them against the model and against what Kubernetes promises.
package history

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Never is later than every time of a round.
const Never = time.Duration(math.MaxInt64)

// History is one round. Its objects have names that no other round uses, and none of them exists at its beginning and its end.
type History struct {
	// Began is when the round began, which all times count from.
	Began time.Time `json:"began"`
	// Names are the names of the round's objects.
	Names    []string  `json:"names"`
	Requests []Request `json:"requests"`
	Streams  []Stream  `json:"streams"`
	// Writers are the field managers of other clients that have written the objects of this or an earlier round. The first stream, and those of the
	// same watch, then show all versions of each object.
	Writers []string `json:"writers,omitempty"`
	// Removed are the objects of this history that earlier rounds have seen removed; see Removals.
	Removed map[string]string `json:"removed,omitempty"`
	// Settled is the resourceVersion at which the garbage collector had time to finish what clients had begun, where objects own each
	// other. Such histories are checked for that instead of for an order of requests, as the collector's requests are not known.
	Settled string `json:"settled,omitempty"`
	// ClusterOwner is a cluster-scoped object that may own the objects, which clients have deleted before that; nil if there is none.
	ClusterOwner *model.Owner `json:"clusterOwner,omitempty"`
	// Graceful reports that the objects are pods. Their deletion is checked instead of an order of requests.
	Graceful bool `json:"graceful,omitempty"`
	// Wait is when the driver waited for pods to be removed by the kubelets that run them; nil if no kubelet runs them.
	Wait *Wait `json:"wait,omitempty"`
	// Homes are the namespaces of the objects, by the names of the objects, if clients delete those namespaces; nil otherwise. Namespaces are the
	// events of a watch of them.
	Homes      map[string]string `json:"homes,omitempty"`
	Namespaces []Event           `json:"namespaces,omitempty"`
	// Faults are the injected faults that had an effect. They change nothing that is promised: they only distinguish what Kubernetes itself shows.
	Faults []Fault `json:"faults,omitempty"`
	// Workloads are what watches of several kinds have shown of workloads and of what these create, in the order of arrival. Those before Quiet
	// arrived before a moment at which controllers had time to finish what clients had begun.
	Workloads []Event `json:"workloads,omitempty"`
	Quiet     int     `json:"quiet,omitempty"`
	// Unsupervised reports that the node of the pods does not exist, so that the pod garbage collector removes them after some time.
	Unsupervised bool `json:"unsupervised,omitempty"`
	// Interrupted reports that the API server was restarted during the round or shortly before, so that controllers watch some kinds again later than
	// others.
	Interrupted bool `json:"interrupted,omitempty"`
	// Operated is what is known of the operator that reconciles the objects; nil if none does.
	Operated *Operated `json:"operated,omitempty"`

	// Unseen are the objects that Names lacks because their changes were not all seen.
	Unseen []string `json:"-"`
}

// Wait is a time of waiting, since the beginning of the round.
type Wait struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Fault is an injected fault.
type Fault struct {
	// At is when it had its effect, since the beginning of the round.
	At   time.Duration `json:"at"`
	Name string        `json:"name"`
	// Effect describes what it did.
	Effect string `json:"effect"`
	// Write is the write that it met, as OPERATION resource/name, or OPERATION resource/subresource/name; empty if it met none.
	Write string `json:"write,omitempty"`
}

// Concerns reports whether what happens to one object, namespace or owner may explain what happened to another.
func (h *History) Concerns(name, other string) bool {
	return name == other || h.Homes[name] == other || h.Homes[other] == name || h.owns(name, other) || h.owns(other, name) ||
		h.ParentOf(other) == name || other == Operator ||
		slices.ContainsFunc(h.groups(name), func(group string) bool { return slices.Contains(h.groups(other), group) })
}

// groups are the uids of a workload and of what has controlled it, and the labels by which it is selected.
func (h *History) groups(name string) []string {
	var groups []string
	for _, event := range h.Workloads {
		if event.Name == name {
			groups = append(groups, event.Object.UID, event.Workload.Controller, event.Workload.Group)
		}
	}
	return slices.DeleteFunc(groups, func(group string) bool { return group == "" })
}

// owns reports whether an object has ever named another as its owner.
func (h *History) owns(name, dependent string) bool {
	return slices.ContainsFunc(h.Streams, func(stream Stream) bool {
		return slices.ContainsFunc(stream.Events, func(event Event) bool {
			return event.Name == dependent && slices.ContainsFunc(model.OwnersOf(event.Object.Owners), func(owner model.Owner) bool { return owner.Name == name })
		})
	})
}

// IsNamespace reports whether a name is that of one of the round's namespaces.
func (h *History) IsNamespace(name string) bool {
	for _, home := range h.Homes {
		if home == name {
			return true
		}
	}
	return false
}

// Request is one request and its response.
type Request struct {
	// Client is the number of the client, from 1 on; 0 for a list of all objects of the run, after the round.
	Client int `json:"client"`
	// Call and Return are when it was sent and when the response was there, since the beginning of the round.
	Call   time.Duration `json:"call"`
	Return time.Duration `json:"return"`
	// Name is the name of the object; empty for a list (Select) and a deletecollection (Delete).
	Name      string          `json:"name,omitempty"`
	Operation model.Operation `json:"operation"`
	Outcome   model.Outcome   `json:"outcome"`
	// Version is the resourceVersion parameter of a get or list, and Match its resourceVersionMatch.
	Version string `json:"version,omitempty"`
	Match   string `json:"match,omitempty"`
	// Listing is what the response to a list or deletecollection shows; nil if it shows no list.
	Listing *Listing `json:"listing,omitempty"`
}

// Listing is a list of objects.
type Listing struct {
	// Versions are the resourceVersions of the list, one for each page.
	Versions []string `json:"versions"`
	// Objects are those on the list, by name.
	Objects map[string]model.Object `json:"objects"`
}

// IsLinearizable reports whether a request reads or writes the most recent state.
func (r Request) IsLinearizable() bool { return r.Version == "" }

// Source names the response.
func (r Request) Source() string {
	switch {
	case r.Client == 0:
		return "the list after the round"
	case r.Operation.Verb == model.Select:
		return fmt.Sprintf("a list of client %d", r.Client)
	}
	return fmt.Sprintf("the response to %s of client %d", r.Operation.Verb, r.Client)
}

// MayHaveSucceeded reports whether the server carried out a request, or may have done so.
func (r Request) MayHaveSucceeded() bool { return r.Outcome.Lost() || r.Outcome.Succeeded() }

// Stream is what one watch request delivered during the round.
type Stream struct {
	// ID names the watcher in failures. One watcher has several streams, one after the other.
	ID string `json:"id"`
	// Label is the value that the label selector requires; empty for all.
	Label string `json:"label,omitempty"`
	// From is the resourceVersion after which the stream begins; empty if it begins with the state of all objects (sendInitialEvents).
	From string `json:"from,omitempty"`
	// Resumed reports that From is where an earlier stream of the watcher ended.
	Resumed bool `json:"resumed,omitempty"`
	// Missed are the changes that no stream of the watcher has delivered, as the server no longer had the events after the earlier one (410). The list
	// at From has shown them.
	Missed []Event `json:"missed,omitempty"`
	// To is the resourceVersion up to which the stream must be complete; empty for that of its last event.
	To string `json:"to,omitempty"`
	// Stalled reports that the stream did not deliver To in time.
	Stalled bool    `json:"stalled,omitempty"`
	Events  []Event `json:"events"`
}

// Event is one event of a watch.
type Event struct {
	// At is when it arrived, since the beginning of the round.
	At time.Duration `json:"at"`
	// Type is ADDED, MODIFIED, DELETED or BOOKMARK.
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	// Object is the object of the event; of a bookmark it has only a resourceVersion.
	Object model.Object `json:"object"`
	// Pod is what is known of a pod besides; nil for other objects.
	Pod *Pod `json:"pod,omitempty"`
	// Workload is the same for a workload, what it creates, or a Service.
	Workload *Workload `json:"workload,omitempty"`
	// InitialEventsEnd marks the bookmark after the initial events.
	InitialEventsEnd bool `json:"initialEventsEnd,omitempty"`
}

// Pod is what matters for the graceful deletion of a pod.
type Pod struct {
	// Scheduled reports that it has a node, and Running that a container runs.
	Scheduled bool `json:"scheduled,omitempty"`
	Running   bool `json:"running,omitempty"`
	// Termination is its terminationGracePeriodSeconds.
	Termination int64 `json:"termination"`
	// Grace is its deletionGracePeriodSeconds, and Deadline its deletionTimestamp; nil while it is not terminating.
	Grace    *int64     `json:"grace,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"`
}

// Workload is what matters of a workload, of what it creates, of a Service or a PodDisruptionBudget, or of their namespace. The name of such an object in a history contains its kind:
// Pod/a.
type Workload struct {
	Kind string `json:"kind"`
	// Group is the value of the label that a workload, Service or PodDisruptionBudget selects, that a pod or claim has, or the name of the Service of an EndpointSlice.
	Group string `json:"group,omitempty"`
	// Controller is the uid of the owner that controls the object; empty if there is none.
	Controller string `json:"controller,omitempty"`
	// Replicas is how many pods a workload requires: of a Job those at the same time, at most as many as must still succeed, and of a DaemonSet
	// those of all nodes. Of a PodDisruptionBudget it is how many must stay ready.
	Replicas int64 `json:"replicas,omitempty"`
	// Retains reports that a StatefulSet keeps its claims when it is deleted or scaled.
	Retains bool `json:"retains,omitempty"`
	// Template names the pod template of a workload, or the one that a pod was created from.
	Template string `json:"template,omitempty"`
	// Finished reports that a Job or a pod has ended, and Failed that a pod has failed.
	Finished bool `json:"finished,omitempty"`
	Failed   bool `json:"failed,omitempty"`
	// Node is the node of a pod, and Ready its condition of that name.
	Node  string `json:"node,omitempty"`
	Ready bool   `json:"ready,omitempty"`
	// Endpoints are the uids of the pods that an EndpointSlice shows as ready.
	Endpoints model.Names `json:"endpoints,omitempty"`
	// Allowed is how many disruptions a PodDisruptionBudget allows, and Disrupted are the names of the pods that evictions have counted, until the
	// disruption controller has seen their deletion.
	Allowed   int64       `json:"allowed,omitempty"`
	Disrupted model.Names `json:"disrupted,omitempty"`
}

// Types of events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
)

// Violation is a promise that a history breaks.
type Violation struct {
	Property *Property
	// Rule is the promise of a property that has several.
	Rule model.Rule
	// Name is the object that it is about; empty if it is about none.
	Name string
	// Message describes what happened and what was expected.
	Message string
	// Request is the request that no order explains, as an index; -1 if it is not about a request.
	Request int
	// Stream is the stream that it is about, as an index; -1 if it is about none.
	Stream int
	// Undecided reports that other clients write the object, so that the promise may be kept. Message has the reason.
	Undecided bool
}
