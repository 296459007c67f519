package report

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// trace is a timeline as report.html draws it: small, in milliseconds since its first entry, and sorted by object.
type trace struct {
	Objects  []traceObject  `json:"objects,omitempty"`
	Requests []traceRequest `json:"requests,omitempty"`
	Events   []traceEvent   `json:"events,omitempty"`
}

type traceObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

type traceRequest struct {
	At   float64 `json:"t"`
	Took float64 `json:"took"`
	// Object is the index of the object that the request is about, -1 where it is about none that was observed.
	Object   int      `json:"object"`
	Verb     string   `json:"verb"`
	Path     string   `json:"path"`
	Body     string   `json:"body,omitempty"`
	Status   int      `json:"status"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
	Refusal  string   `json:"refusal,omitempty"`
}

type traceEvent struct {
	At         float64  `json:"t"`
	Object     int      `json:"object"`
	Type       string   `json:"type"`
	Deletion   string   `json:"deletion,omitempty"`
	Grace      *int64   `json:"grace,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	Owners     []string `json:"owners,omitempty"`
	Phase      string   `json:"phase,omitempty"`
	Containers []string `json:"containers,omitempty"`
}

// bodyInPage is how many characters of a request's body report.html keeps; report.json has all that was recorded.
const bodyInPage = 1_500

// uidShown is how much of a uid is enough to tell namesakes apart.
const uidShown = 8

// traceOf makes the trace of a timeline; the bodies of requests can be left out, they are most of its size.
func traceOf(timeline v1alpha1.Timeline, bodies bool) *trace {
	if len(timeline.Requests)+len(timeline.Events) == 0 {
		return nil
	}
	start := startOf(timeline)
	objects := objectsOf(timeline)
	t := &trace{}
	for i, o := range objects {
		last := o.last()
		t.Objects = append(t.Objects, traceObject{
			Kind: Visible(last.Kind), Namespace: Visible(last.Namespace), Name: Visible(last.Name),
			UID: Visible(string(o.uid)[:min(len(o.uid), uidShown)]),
		})
		for _, event := range o.events {
			t.Events = append(t.Events, traceEventOf(event, i, start))
		}
	}
	slices.SortStableFunc(t.Events, func(a, b traceEvent) int { return cmp.Compare(a.At, b.At) })
	for _, request := range timeline.Requests {
		t.Requests = append(t.Requests, traceRequestOf(request, concerned(objects, request), start, bodies))
	}
	slices.SortStableFunc(t.Requests, func(a, b traceRequest) int { return cmp.Compare(a.At, b.At) })
	return t
}

// startOf is the moment of the timeline's first entry.
func startOf(timeline v1alpha1.Timeline) time.Time {
	var start time.Time
	for _, request := range timeline.Requests {
		if start.IsZero() || request.At.Before(start) {
			start = request.At
		}
	}
	for _, event := range timeline.Events {
		if start.IsZero() || event.At.Before(start) {
			start = event.At
		}
	}
	return start
}

func traceEventOf(event v1alpha1.Observation, object int, start time.Time) traceEvent {
	e := traceEvent{
		At: milliseconds(event.At.Sub(start)), Object: object, Type: Visible(event.Type), Grace: event.GraceSeconds,
		Finalizers: allVisible(event.Finalizers), Phase: Visible(event.Phase), Containers: allVisible(event.Containers),
	}
	if event.DeletionTimestamp != nil {
		e.Deletion = event.DeletionTimestamp.UTC().Format(time.RFC3339)
	}
	for _, owner := range event.Owners {
		e.Owners = append(e.Owners, Visible(strings.TrimPrefix(ownerText(owner), "owned by ")))
	}
	return e
}

func traceRequestOf(request v1alpha1.Request, object int, start time.Time, bodies bool) traceRequest {
	t := traceRequest{
		At: milliseconds(request.At.Sub(start)), Took: milliseconds(request.Latency), Object: object,
		Verb: Visible(request.Verb), Path: Visible(request.Path), Status: request.Status,
		Warnings: allVisible(request.Warnings), Error: Visible(request.Error), Refusal: Visible(request.Refusal),
	}
	if bodies {
		t.Body = shorten(Visible(request.Body), bodyInPage)
	}
	return t
}

func allVisible(texts []string) []string {
	var shown []string
	for _, text := range texts {
		shown = append(shown, Visible(text))
	}
	return shown
}

// milliseconds is a duration with one decimal: finer than watches are, and short in JSON.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*10) / 10
}

// concerned is the index of the object that a request is about, or -1. Requests name objects by path, creates by their
// body. Of namesakes, a create means the first that was born after it, and any other request the last born before it.
func concerned(objects []*object, request v1alpha1.Request) int {
	target := parsePath(request.Path)
	create := request.Verb == "POST" && target.name == ""
	if create {
		target.name = nameIn(request.Body)
	}
	match := -1
	for i, o := range objects {
		last := o.last()
		if target.name == "" || target.name != last.Name || target.namespace != last.Namespace || !sameKind(target.resource, last.Kind) {
			continue
		}
		after := o.born().After(request.At)
		if match < 0 || !create && !after {
			match = i
		}
		if create && after {
			return i
		}
	}
	return match
}

// nameIn is the name that an object in a request's body gives itself.
func nameIn(body string) string {
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		return ""
	}
	return sent.Name
}

// target is what a path of the Kubernetes API names.
type target struct{ namespace, resource, name string }

// parsePath reads /api/v1/namespaces/ns/configmaps/name/status and its like.
func parsePath(path string) target {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return target{}
	}
	var t target
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	return t
}

// sameKind tells a resource by the kind's plural, which differs from it by its ending only: policies, ingresses.
func sameKind(resource, kind string) bool {
	stem := strings.TrimSuffix(strings.ToLower(kind), "y")
	return stem != "" && strings.HasPrefix(resource, stem) && len(resource) <= len(stem)+3
}
