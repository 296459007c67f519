package history

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// unsupervised is how long a pod may be without its node before the pod garbage collector may delete it, with gracePeriodSeconds 0. It waits
// 40 s (quarantineTime in pkg/controller/podgc).
const unsupervised = 30 * time.Second

// graceCheck checks the graceful deletion of one pod.
type graceCheck struct {
	*observed
	deletes  []Request
	findings []Finding
}

func (c *graceCheck) found(property *Property, format string, values ...any) {
	c.findings = append(c.findings, property.broken(c.name, format, values...))
}

// checkGrace checks each pod as the watches without a selector have shown it.
func (h *History) checkGrace() []Finding {
	pods := map[string]*graceCheck{}
	for uid, pod := range h.observed(func(event Event) bool { return event.Pod != nil && slices.Contains(h.Names, event.Name) }) {
		pods[uid] = &graceCheck{observed: pod}
	}
	for _, request := range h.Requests {
		if pod := pods[request.Operation.UID]; pod != nil && request.Operation.Verb == model.Delete {
			pod.deletes = append(pod.deletes, request)
		}
	}
	var findings []Finding
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		pods[uid].check()
		findings = append(findings, pods[uid].findings...)
	}
	return findings
}

func (c *graceCheck) check() {
	for i, event := range c.events {
		expired := i > 0 && shortensExpired(*c.events[i-1].Pod, *event.Pod)
		switch {
		case expired:
			c.found(GraceExpired, "the deletionTimestamp of %s had passed, and a shorter grace period moved it from %s to %s",
				c.name, c.events[i-1].Pod.Deadline.Format(time.RFC3339), event.Pod.Deadline.Format(time.RFC3339))
		case i > 0:
			c.checkDecrease(*c.events[i-1].Pod, *event.Pod)
		}
		switch grace := event.Pod.Grace; {
		case event.Type == Deleted:
			c.checkRemoval(event)
		case expired, grace == nil:
		case !event.Pod.Scheduled && *grace != 0:
			c.found(GraceImmediate, "%s has no node, and it is terminating with deletionGracePeriodSeconds %d", c.name, *grace)
		case c.isSupervised(event) && !c.isRequested(*grace, *event.Pod):
			c.found(GraceRequested, "%s has deletionGracePeriodSeconds %d, and no delete requested that", c.name, *grace)
		}
	}
}

// shortensExpired reports whether a delete shortened a grace period that had expired. The API server then makes it 0 or 1, and the
// deletionTimestamp the time of the delete (BeforeDelete in k8s.io/apiserver/pkg/registry/rest/delete.go). One that has not expired moves the
// deletionTimestamp to an earlier time.
func shortensExpired(before, after Pod) bool {
	return before.Grace != nil && after.Grace != nil && *after.Grace < *before.Grace && *after.Grace <= 1 && after.Deadline.After(*before.Deadline)
}

func (c *graceCheck) checkDecrease(before, after Pod) {
	switch {
	case before.Grace == nil:
	case after.Grace == nil:
		c.found(GraceDecreases, "%s was terminating, and it no longer is", c.name)
	case *after.Grace > *before.Grace:
		c.found(GraceDecreases, "the deletionGracePeriodSeconds of %s changed from %d to %d", c.name, *before.Grace, *after.Grace)
	case after.Deadline.After(*before.Deadline):
		c.found(GraceDecreases, "the deletionTimestamp of %s changed from %s to %s", c.name, before.Deadline.Format(time.RFC3339), after.Deadline.Format(time.RFC3339))
	}
}

// checkRemoval checks that a pod with a node was removed by a request that allowed that.
func (c *graceCheck) checkRemoval(removal Event) {
	if !c.isSupervised(removal) || c.isRequested(0, *removal.Pod) {
		return
	}
	property := GraceNeverEarly
	if c.replaces {
		property = AtomicRemoval
	}
	c.found(property, "%s was removed, and no delete requested gracePeriodSeconds 0", c.name)
}

// isSupervised reports whether a pod has a node, and the pod garbage collector does not yet miss that node.
func (c *graceCheck) isSupervised(event Event) bool {
	return event.Pod.Scheduled && event.At-c.events[0].At < unsupervised
}

// isRequested reports whether a delete may have set a grace period. One with grace period 0 may do so before it is refused with 409, because
// another delete has removed the pod meanwhile.
func (c *graceCheck) isRequested(grace int64, pod Pod) bool {
	return slices.ContainsFunc(c.deletes, func(request Request) bool {
		requested := pod.Termination
		if request.Operation.Grace != nil {
			requested = *request.Operation.Grace
		}
		if requested < 0 {
			requested = 1 // as upstream takes negative values
		}
		return requested == grace && (request.Outcome.Lost() || request.Outcome.Succeeded() || request.Outcome.Code == http.StatusConflict)
	})
}
