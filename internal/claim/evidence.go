package claim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// slack is how far times of one run may differ: the clock of the machine may be adjusted during the run.
const slack = time.Second

// runLabel matches the label of the run in the body of a request.
var runLabel = regexp.MustCompile(`"` + regexp.QuoteMeta(session.RunLabel) + `":"([^"]*)"`)

// checkResults checks that each outcome agrees with its recorded evidence. It includes results of profiles that are not claimed.
func (v *verification) checkResults() {
	created := map[string]string{}
	for _, result := range v.cluster.Results {
		v.checkOutcome(result)
		v.checkTimes(result)
		v.checkRequests(result)
		v.checkCreated(result, created)
		if result.Outcome == v1alpha1.Passed {
			v.checkHistories(result)
		}
	}
}

// checkOutcome checks an outcome against the level, the reason, the failure and the requirements of the behavior.
func (v *verification) checkOutcome(result v1alpha1.Result) {
	failed := slices.Contains(failing, result.Outcome)
	hasMessage := result.Failure != nil && strings.TrimSpace(result.Failure.Message) != ""
	ran := !result.Start.IsZero() && result.Seconds > 0
	switch {
	case !slices.Contains(v1alpha1.Levels, result.Level):
		v.found(result.ID, "unknown level %q", result.Level)
	case result.Outcome == v1alpha1.Passed && result.Failure != nil:
		v.found(result.ID, "it passed, and the report contains its failure: %.200s", result.Failure.Message)
	case result.Outcome == v1alpha1.Passed && result.Reason != "":
		v.found(result.ID, "it passed, and the report contains a reason why not: %.200s", result.Reason)
	case failed && !hasMessage:
		v.found(result.ID, "it %s, and the report contains no failure", verb(result.Outcome))
	case result.Outcome == v1alpha1.Deviated && result.Level != v1alpha1.Observed:
		v.found(result.ID, "it is %s, and only observed behaviors deviate", result.Level)
	case result.Outcome == v1alpha1.Skipped:
		v.checkSkip(result)
	case result.Outcome == v1alpha1.Filtered && (!result.Start.IsZero() || len(result.Timeline.Requests) > 0):
		v.found(result.ID, "it was not selected, and the report contains its run")
	case !failed && result.Outcome != v1alpha1.Passed:
	case !ran:
		v.found(result.ID, "it %s, and the report does not contain when", verb(result.Outcome))
	case result.Outcome == v1alpha1.Passed && len(result.Timeline.Requests) == 0:
		v.found(result.ID, "it passed without a recorded request")
	default:
		if reason := v.lacks(result.Behavior); reason != "" {
			v.found(result.ID, "it %s, and it cannot be tested here: %s", verb(result.Outcome), reason)
		}
	}
}

// checkSkip checks a skip as far as its reason is about the selection or a version. Other reasons are what the cluster returned.
func (v *verification) checkSkip(result v1alpha1.Result) {
	switch {
	case result.Failure != nil:
		v.found(result.ID, "it was skipped, and the report contains its failure: %.200s", result.Failure.Message)
	case strings.TrimSpace(result.Reason) == "":
		v.found(result.ID, "it was skipped without a reason")
	case strings.HasPrefix(result.Reason, "not selected"):
		v.found(result.ID, "it was skipped because it was %s: that is no skip", result.Reason)
	case result.Start.IsZero():
		v.found(result.ID, "it was skipped, and the report does not contain when")
	case strings.HasPrefix(result.Reason, "disruptive:") && !result.Disruptive:
		v.found(result.ID, "it was skipped as disruptive, and it is not")
	case tooOld.MatchString(result.Reason) && v.lacks(result.Behavior) == "":
		v.found(result.ID, "it was skipped because of a version that is new enough: %s", result.Reason)
	}
}

// tooOld matches the reason of a skip because of a version.
var tooOld = regexp.MustCompile(`^requires (Kubernetes|kubectl) \S+ or newer; `)

// verb describes an outcome of a behavior that ran.
func verb(outcome v1alpha1.Outcome) string {
	switch outcome {
	case v1alpha1.Passed:
		return "passed"
	case v1alpha1.Deviated:
		return "deviated"
	}
	return "failed"
}

// lacks returns why a run on this cluster skips a behavior, by the features and the versions in the report; empty when it does not.
func (v *verification) lacks(behavior v1alpha1.Behavior) string {
	config := session.Config{ServerVersion: v.cluster.ServerVersion, Unsupported: map[v1alpha1.Feature]string{}}
	config.Disruptive, config.Kubectl.Version = true, v.cluster.KubectlVersion
	for _, capability := range v.cluster.Capabilities {
		if !capability.Present {
			config.Unsupported[capability.Feature] = fmt.Sprintf("%s: %s", capability.Feature, capability.Reason)
		}
	}
	if behavior.IsKubectl() && v.cluster.KubectlVersion == "" {
		return "the report does not contain the version of kubectl"
	}
	return config.Lacks(behavior)
}

// stamp is a time in a message.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// checkTimes checks that a behavior ran during the run, and that its evidence was recorded while it ran, in order.
func (v *verification) checkTimes(result v1alpha1.Result) {
	if result.Start.IsZero() {
		return
	}
	start, end := result.Start.Add(-slack), result.Start.Add(time.Duration(result.Seconds*float64(time.Second))+slack)
	if start.Before(v.report.Start.Add(-slack-slack)) || end.After(v.report.End.Add(slack+slack)) || result.Seconds < 0 {
		v.found(result.ID, "it ran at %s for %gs, outside of the run (%s to %s)", stamp(result.Start), result.Seconds, stamp(v.report.Start), stamp(v.report.End))
		return
	}
	for _, request := range result.Timeline.Requests {
		if request.At.Before(start) || request.At.Add(request.Latency).After(end) {
			v.found(result.ID, "%s %s at %s is outside of the time in which it ran", request.Verb, request.Path, stamp(request.At))
			return
		}
	}
	last := start
	for _, event := range result.Timeline.Events {
		if event.At.Before(start) || event.At.After(end) {
			v.found(result.ID, "%s of %s at %s is outside of the time in which it ran", event.Type, named(event.ObjectReference), stamp(event.At))
			return
		}
		if event.At.Before(last.Add(-slack)) {
			v.found(result.ID, "%s of %s at %s is out of order: the event before it is of %s", event.Type, named(event.ObjectReference), stamp(event.At), stamp(last))
			return
		}
		last = event.At
	}
}

// named names an object in a message.
func named(object v1alpha1.ObjectReference) string {
	return fmt.Sprintf("%s %q", object.Kind, object.Name)
}

const (
	// leastStatus and mostStatus are the limits of HTTP statuses, and refused is the first one of a refusal.
	leastStatus, mostStatus, refused = 100, 599, 400
)

// checkRequests checks each request and its response.
func (v *verification) checkRequests(result v1alpha1.Result) {
	for _, request := range result.Timeline.Requests {
		what := fmt.Sprintf("%s %s", request.Verb, request.Path)
		wrong := ""
		switch status := request.Status; {
		case request.Verb == "" || request.Path == "":
			wrong = "has no verb or no path"
		case status == 0 && request.Error == "":
			wrong = "has neither a response nor an error"
		case status != 0 && (status < leastStatus || status > mostStatus):
			wrong = fmt.Sprintf("has the status %d", status)
		case status != 0 && status < refused && request.Refusal != "":
			wrong = fmt.Sprintf("was answered with %d, and refused: %.200s", status, request.Refusal)
		case request.Latency < 0:
			wrong = "was answered before it was sent"
		case v.otherRun(request) != "":
			wrong = fmt.Sprintf("belongs to the run %s, and not to %s", v.otherRun(request), v.report.RunID)
		}
		if wrong != "" {
			v.found(result.ID, "%s %s", what, wrong)
			return
		}
	}
}

// otherRun returns the run with whose id a request labels an object; empty if it is that of the report.
func (v *verification) otherRun(request v1alpha1.Request) string {
	for _, label := range runLabel.FindAllStringSubmatch(request.Body, -1) {
		if !slices.Contains(strings.Split(v.report.RunID, "+"), label[1]) {
			return label[1]
		}
	}
	return ""
}

// checkCreated checks that an object was created once in the run, and that nothing was observed of it before. It adds the objects that the
// behavior created, by uid.
func (v *verification) checkCreated(result v1alpha1.Result, created map[string]string) {
	for _, request := range result.Timeline.Requests {
		object := request.Object
		if request.Verb != "POST" || request.Status != 201 || object == nil || object.UID == "" || request.Subresource != "" ||
			strings.Contains(request.Path, "dryRun=") {
			continue
		}
		uid := string(object.UID)
		if other := created[uid]; other != "" {
			v.found(result.ID, "%s with uid %s was also created in %s: evidence of one behavior was copied", named(*object), uid, other)
			return
		}
		created[uid] = result.ID
		early := slices.IndexFunc(result.Timeline.Events, func(event v1alpha1.Observation) bool {
			return event.UID == object.UID && event.At.Before(request.At.Add(-slack))
		})
		if early >= 0 {
			v.found(result.ID, "%s was observed at %s, before it was created at %s", named(*object), stamp(result.Timeline.Events[early].At), stamp(request.At))
			return
		}
	}
}
