package report

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// bodyInText limits the body of a request in the text form, in characters; report.json contains all that was recorded.
const bodyInText = 400

// line is a line of a timeline as text.
type line struct {
	at   time.Time
	text string
}

// timelineText formats a timeline: one line for each request, review or event, in the order of the runner's clock, with the seconds since
// the first. A successful canary of a barrier is one line, and so is a poll. It is empty for an empty timeline.
func timelineText(timeline v1alpha1.Timeline) string {
	objects, rest := ObjectsOf(timeline)
	lines := append(requestLines(Polls(rest.Requests, nil)), reviewLines(rest.Reviews)...)
	for _, o := range objects {
		if o.Canary {
			lines = append(append(lines, canaryLine(o)), requestLines(Polls(slices.DeleteFunc(o.Requests, succeeded), nil))...)
			continue
		}
		lines = append(append(lines, requestLines(Polls(o.Requests, o.Events))...), reviewLines(o.Reviews)...)
		for _, event := range o.Events {
			lines = append(lines, line{event.At, eventLine(event)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })

	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%+9.3fs  %s\n", l.at.Sub(lines[0].at).Seconds(), Joined(l.text))
	}
	return text.String()
}

// Poll is a read that is repeated with the same response, or any other request, once.
type Poll struct {
	v1alpha1.Request
	// Repeats is how often it was repeated, and Last when it was sent for the last time.
	Repeats int
	Last    time.Time
}

// Polls groups requests, in the order in which they were sent. A write or an event ends all polls.
func Polls(requests []v1alpha1.Request, events []v1alpha1.Observation) []Poll {
	var polls []Poll
	open, before := map[string]int{}, time.Time{}
	for _, request := range requests {
		observed := slices.ContainsFunc(events, func(event v1alpha1.Observation) bool {
			return event.At.After(before) && !event.At.After(request.At)
		})
		if before = request.At; observed || Verb(request) != http.MethodGet {
			clear(open)
		}
		key := fmt.Sprint(request.Path, request.Status, request.Error, request.Refusal, request.Warnings)
		if at, again := open[key]; again {
			polls[at].Repeats, polls[at].Last = polls[at].Repeats+1, request.At
			continue
		}
		if Verb(request) == http.MethodGet {
			open[key] = len(polls)
		}
		polls = append(polls, Poll{Request: request, Last: request.At})
	}
	return polls
}

// Repetitions describes the repetitions of a poll; empty when there are none.
func (p Poll) Repetitions() string {
	if p.Repeats == 0 {
		return ""
	}
	return fmt.Sprintf("repeated %d times within %s", p.Repeats, rounded(p.Last.Sub(p.At)))
}

func requestLines(polls []Poll) []line {
	var lines []line
	for _, poll := range polls {
		text := requestLine(poll.Request)
		if again := poll.Repetitions(); again != "" {
			text += "; " + again
		}
		lines = append(lines, line{poll.At, text})
	}
	return lines
}

// requestLine describes a request and its response: `DELETE /api/v1/... -> 200 in 4ms`.
func requestLine(request v1alpha1.Request) string {
	text := Verb(request) + " " + request.Path
	if request.Status == 0 {
		text += " -> no response: " + request.Error
	} else {
		text += fmt.Sprintf(" -> %d in %s", request.Status, rounded(request.Latency))
	}
	if request.Refusal != "" {
		text += ": " + request.Refusal
	}
	for _, warning := range request.Warnings {
		text += "; warning: " + warning
	}
	if request.Body != "" {
		text += "; sent " + Shorten(request.Body, bodyInText)
	}
	return text
}

// Verb returns the HTTP method of a request, or WATCH.
func Verb(request v1alpha1.Request) string {
	if address, err := url.Parse(request.Path); err == nil && address.Query().Get("watch") == "true" {
		return "WATCH"
	}
	return request.Verb
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond / 10) }

func succeeded(request v1alpha1.Request) bool { return request.Status > 0 && request.Status < 400 }

// canaryLine describes a canary: `canary ConfigMap ns/canary (uid 1234): deleted after 51ms`.
func canaryLine(o *Object) line {
	at := o.FirstSeen()
	if len(o.Requests) > 0 && o.Requests[0].At.Before(at) {
		at = o.Requests[0].At
	}
	end := "still there"
	if deleted, ok := o.DeletedAt(); ok {
		end = fmt.Sprintf("deleted after %s", rounded(deleted.Sub(at)))
	}
	return line{at, fmt.Sprintf("canary %s: %s", objectText(o.ObjectReference), end)}
}

// eventLine describes an event: `MODIFIED ConfigMap ns/owner (uid 1234): deletionTimestamp ..., finalizers [...]`.
func eventLine(event v1alpha1.Observation) string {
	text := event.Type + " " + objectText(event.ObjectReference)
	if state := slices.Concat(objectState(event), event.Changes, ReleaseTexts(event)); len(state) > 0 {
		text += ": " + strings.Join(state, ", ")
	}
	if len(event.Writers) > 0 {
		text += "; written by " + strings.Join(event.Writers, ", ")
	}
	return text
}

// ReleaseTexts describe the finalizers that were removed, and who had set them.
func ReleaseTexts(event v1alpha1.Observation) []string {
	var texts []string
	for _, release := range event.Released {
		text := "finalizer " + release.Finalizer + " removed"
		if len(release.SetBy) > 0 {
			text += " (it was set by " + strings.Join(release.SetBy, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

func objectText(o v1alpha1.ObjectReference) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s (uid %s)", o.Kind, name, o.UID)
}

// objectState lists the fields of an observed object that matter to its deletion.
func objectState(event v1alpha1.Observation) []string {
	var state []string
	if event.DeletionTimestamp != nil {
		state = append(state, "deletionTimestamp "+event.DeletionTimestamp.UTC().Format(time.RFC3339))
	}
	if event.GraceSeconds != nil {
		state = append(state, fmt.Sprintf("grace %d s", *event.GraceSeconds))
	}
	if len(event.Finalizers) > 0 {
		state = append(state, "finalizers ["+strings.Join(event.Finalizers, " ")+"]")
	}
	for _, owner := range event.Owners {
		state = append(state, OwnerText(owner))
	}
	if event.Phase != "" {
		state = append(state, "phase "+event.Phase)
	}
	return append(state, event.Containers...)
}

// OwnerText describes an owner, and whether the reference blocks its deletion.
func OwnerText(owner metav1.OwnerReference) string {
	text := "owned by " + owner.Kind + " " + owner.Name
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		text += " (blocking)"
	}
	return text
}
