package html

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// trace is a timeline for report.html: compact, in milliseconds since its first entry, and sorted by object.
type trace struct {
	Objects  []traceObject  `json:"objects,omitempty"`
	Requests []traceRequest `json:"requests,omitempty"`
	Events   []traceEvent   `json:"events,omitempty"`
	Reviews  []traceReview  `json:"reviews,omitempty"`
}

type traceObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Canary objects share a lane.
	Canary bool `json:"canary,omitempty"`
}

type traceRequest struct {
	At   float64 `json:"t"`
	Took float64 `json:"took"`
	// Object is the index of the request's object; -1 for objects that were not observed.
	Object   int      `json:"object"`
	Verb     string   `json:"verb"`
	Path     string   `json:"path"`
	Body     string   `json:"body,omitempty"`
	Status   int      `json:"status"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
	Refusal  string   `json:"refusal,omitempty"`
	// Repetitions describes how often it was repeated with the same response.
	Repetitions string `json:"again,omitempty"`
}

type traceEvent struct {
	At         float64  `json:"t"`
	Object     int      `json:"object"`
	Type       string   `json:"type"`
	Deletion   string   `json:"deletion,omitempty"`
	Grace      *int64   `json:"grace,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	Owners     []string `json:"owners,omitempty"`
	// Changes are those of labels and selectors.
	Changes []string `json:"changes,omitempty"`
	// Writers are the field managers that wrote the change.
	Writers    []string       `json:"writers,omitempty"`
	Released   []traceRelease `json:"released,omitempty"`
	Phase      string         `json:"phase,omitempty"`
	Containers []string       `json:"containers,omitempty"`
}

// traceRelease is a finalizer that was removed, and the field managers that had set it.
type traceRelease struct {
	Finalizer string   `json:"finalizer"`
	SetBy     []string `json:"setBy,omitempty"`
}

// traceReview is a webhook review as text.
type traceReview struct {
	At        float64 `json:"t"`
	Took      float64 `json:"took"`
	Object    int     `json:"object"`
	Operation string  `json:"operation"`
	// By is the user of the reviewed request.
	By string `json:"by"`
	// Asked are the details of the review, one a line.
	Asked   []string `json:"asked,omitempty"`
	Allowed bool     `json:"allowed,omitempty"`
	Message string   `json:"message,omitempty"`
}

// bodyInPage limits the body of a request in report.html, in characters; report.json contains all that was recorded.
const bodyInPage = 1_500

// uidShown is the length of a uid that is sufficient to distinguish objects.
const uidShown = 8

// traceOf returns the trace of a timeline, optionally without the bodies of requests, which are most of its size.
func traceOf(timeline v1alpha1.Timeline, bodies bool) *trace {
	if len(timeline.Requests)+len(timeline.Events)+len(timeline.Reviews) == 0 {
		return nil
	}
	start := startOf(timeline)
	objects, rest := report.ObjectsOf(timeline)
	t := &trace{}
	t.addRequests(report.Polls(rest.Requests, nil), -1, start, bodies)
	t.addReviews(rest.Reviews, -1, start)
	for i, o := range objects {
		t.Objects = append(t.Objects, traceObject{
			Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
			UID: string(o.UID)[:min(len(o.UID), uidShown)], Canary: o.Canary,
		})
		t.addRequests(report.Polls(o.Requests, o.Events), i, start, bodies)
		t.addReviews(o.Reviews, i, start)
		for _, event := range o.Events {
			t.Events = append(t.Events, traceEventOf(event, i, start))
		}
	}
	slices.SortStableFunc(t.Events, func(a, b traceEvent) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(t.Requests, func(a, b traceRequest) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(t.Reviews, func(a, b traceReview) int { return cmp.Compare(a.At, b.At) })
	return t
}

func (t *trace) addRequests(polls []report.Poll, object int, start time.Time, bodies bool) {
	for _, poll := range polls {
		t.Requests = append(t.Requests, traceRequestOf(poll, object, start, bodies))
	}
}

func (t *trace) addReviews(reviews []v1alpha1.Review, object int, start time.Time) {
	for _, review := range reviews {
		t.Reviews = append(t.Reviews, traceReview{
			At: milliseconds(review.At.Sub(start)), Took: milliseconds(review.Latency), Object: object,
			Operation: review.Operation, By: report.Reviewed(review),
			Asked: report.ReviewDetails(review), Allowed: review.Allowed, Message: review.Message,
		})
	}
}

// startOf returns the time of the timeline's first entry.
func startOf(timeline v1alpha1.Timeline) time.Time {
	var times []time.Time
	for _, request := range timeline.Requests {
		times = append(times, request.At)
	}
	for _, event := range timeline.Events {
		times = append(times, event.At)
	}
	for _, review := range timeline.Reviews {
		times = append(times, review.At)
	}
	return slices.MinFunc(times, time.Time.Compare)
}

func traceEventOf(event v1alpha1.Observation, object int, start time.Time) traceEvent {
	e := traceEvent{
		At: milliseconds(event.At.Sub(start)), Object: object, Type: event.Type, Grace: event.GraceSeconds,
		Finalizers: event.Finalizers, Phase: event.Phase, Containers: event.Containers,
		Changes: event.Changes, Writers: event.Writers,
	}
	for _, release := range event.Released {
		e.Released = append(e.Released, traceRelease{release.Finalizer, release.SetBy})
	}
	if event.DeletionTimestamp != nil {
		e.Deletion = event.DeletionTimestamp.UTC().Format(time.RFC3339)
	}
	for _, owner := range event.Owners {
		e.Owners = append(e.Owners, strings.TrimPrefix(report.OwnerText(owner), "owned by "))
	}
	return e
}

func traceRequestOf(request report.Poll, object int, start time.Time, bodies bool) traceRequest {
	t := traceRequest{
		At: milliseconds(request.At.Sub(start)), Took: milliseconds(request.Latency), Object: object,
		Verb: report.Verb(request.Request), Path: request.Path, Status: request.Status,
		Warnings: request.Warnings, Error: request.Error, Refusal: request.Refusal, Repetitions: request.Repetitions(),
	}
	if bodies {
		t.Body = report.Shorten(request.Body, bodyInPage)
	}
	return t
}

// milliseconds returns a duration with one decimal, which is finer than watches, and short in JSON.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*10) / 10
}
