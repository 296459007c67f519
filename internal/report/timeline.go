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

// timelineText is a timeline for people: one line a request or event, in the order of the runner's clock, each with
// its seconds since the first. It is empty for an empty timeline.
func timelineText(timeline v1alpha1.Timeline) string {
	type moment struct {
		at   time.Time
		line string
	}
	moments := make([]moment, 0, len(timeline.Requests)+len(timeline.Events))
	for _, request := range timeline.Requests {
		moments = append(moments, moment{request.At, requestLine(request)})
	}
	for _, event := range timeline.Events {
		moments = append(moments, moment{event.At, eventLine(event)})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })

	var text strings.Builder
	for _, m := range moments {
		fmt.Fprintf(&text, "%+9.3fs  %s\n", m.at.Sub(moments[0].at).Seconds(), strings.Join(strings.Fields(Visible(m.line)), " "))
	}
	return text.String()
}

// requestLine says what was asked and answered: `DELETE /api/v1/... -> 200 in 4ms`.
func requestLine(request v1alpha1.Request) string {
	line := request.Verb + " " + request.Path
	if request.Status == 0 {
		line += " -> no answer: " + request.Error
	} else {
		line += fmt.Sprintf(" -> %d in %s", request.Status, request.Latency.Round(time.Millisecond/10))
	}
	if request.Refusal != "" {
		line += ": " + request.Refusal
	}
	for _, warning := range request.Warnings {
		line += "; warning: " + warning
	}
	if request.Body != "" {
		line += "; sent " + shorten(request.Body, bodyInText)
	}
	return line
}

// eventLine says what was seen: `MODIFIED ConfigMap ns/owner (uid 1234): deletionTimestamp ..., finalizers [...]`.
func eventLine(event v1alpha1.Observation) string {
	name := event.Name
	if event.Namespace != "" {
		name = event.Namespace + "/" + name
	}
	line := fmt.Sprintf("%s %s %s (uid %s)", event.Type, event.Kind, name, event.UID)
	if state := objectState(event); len(state) > 0 {
		line += ": " + strings.Join(state, ", ")
	}
	return line
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
		state = append(state, ownerText(owner))
	}
	if event.Phase != "" {
		state = append(state, "phase "+event.Phase)
	}
	return append(state, event.Containers...)
}

func ownerText(owner metav1.OwnerReference) string {
	text := "owned by " + owner.Kind + " " + owner.Name
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		text += " (blocking)"
	}
	return text
}
