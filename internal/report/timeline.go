package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// bodyInText is how many characters of a request's body the text form keeps; report.json has all that was recorded.
const bodyInText = 400

// line is a line of a timeline as text.
type line struct {
	at   time.Time
	text string
}

// timelineText is a timeline for people: one line a request, review or event, in the order of the runner's clock, each with
// its seconds since the first. All that went well of a barrier's canary is one line. It is empty for an empty timeline.
func timelineText(timeline v1alpha1.Timeline) string {
	objects, rest := ObjectsOf(timeline)
	lines := append(requestLines(rest.Requests), reviewLines(rest.Reviews)...)
	for _, o := range objects {
		if o.Canary {
			lines = append(append(lines, canaryLine(o)), requestLines(slices.DeleteFunc(o.Requests, succeeded))...)
			continue
		}
		lines = append(append(lines, requestLines(o.Requests)...), reviewLines(o.Reviews)...)
		for _, event := range o.Events {
			lines = append(lines, line{event.At, eventLine(event)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })

	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%+9.3fs  %s\n", l.at.Sub(lines[0].at).Seconds(), Joined(Visible(l.text)))
	}
	return text.String()
}

func requestLines(requests []v1alpha1.Request) []line {
	var lines []line
	for _, request := range requests {
		lines = append(lines, line{request.At, requestLine(request)})
	}
	return lines
}

// requestLine says what was sent and what came back: `DELETE /api/v1/... -> 200 in 4ms`.
func requestLine(request v1alpha1.Request) string {
	text := request.Verb + " " + request.Path
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

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond / 10) }

func succeeded(request v1alpha1.Request) bool { return request.Status > 0 && request.Status < 400 }

// canaryLine says what became of a canary: `canary ConfigMap ns/canary (uid 1234): deleted after 51ms`.
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

// eventLine says what was seen: `MODIFIED ConfigMap ns/owner (uid 1234): deletionTimestamp ..., finalizers [...]`.
func eventLine(event v1alpha1.Observation) string {
	text := event.Type + " " + objectText(event.ObjectReference)
	if state := objectState(event); len(state) > 0 {
		text += ": " + strings.Join(state, ", ")
	}
	return text
}

func objectText(o v1alpha1.ObjectReference) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s (uid %s)", o.Kind, name, o.UID)
}

// objectState lists what of an observed object matters to its deletion; fields that are absent are left out.
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

// OwnerText names an owner, and says whether the reference blocks its deletion.
func OwnerText(owner metav1.OwnerReference) string {
	text := "owned by " + owner.Kind + " " + owner.Name
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		text += " (blocking)"
	}
	return text
}
