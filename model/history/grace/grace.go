package grace

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// unsupervised is how long a pod may be without its node before the pod garbage collector may delete it, with gracePeriodSeconds 0. It waits
// 40 s (quarantineTime in pkg/controller/podgc).
const unsupervised = 30 * time.Second

// graceCheck checks the graceful deletion of one pod.
type graceCheck struct {
	*history.Observed
	// wait is when the kubelet had to remove the pod; nil if no kubelet runs it.
	wait *history.Wait
	// deletes are those that may have set a grace period. One with grace period 0 may do so before it is refused with 409, because another
	// delete has removed the pod meanwhile.
	deletes    []history.Request
	violations []history.Violation
}

func (c *graceCheck) violated(property *history.Property, format string, values ...any) {
	c.violations = append(c.violations, property.Broken(c.Name, format, values...))
}

// Check returns the promises of graceful deletion that the history breaks, for each pod as the watches without a selector have shown it.
func Check(h *history.History) []history.Violation {
	pods := map[string]*graceCheck{}
	for uid, pod := range h.Observed() {
		pods[uid] = &graceCheck{Observed: pod, wait: h.Wait}
	}
	for _, request := range h.Requests {
		mayAct := request.MayHaveSucceeded() || request.Outcome.Code == http.StatusConflict
		if pod := pods[request.Operation.UID]; pod != nil && request.Operation.Verb == model.Delete && mayAct {
			pod.deletes = append(pod.deletes, request)
		}
	}
	var violations []history.Violation
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		pods[uid].check()
		violations = append(violations, pods[uid].violations...)
	}
	return violations
}

func (c *graceCheck) check() {
	for i, event := range c.Events {
		expired := i > 0 && shortensExpired(*c.Events[i-1].Pod, *event.Pod)
		switch {
		case expired:
			c.violated(Expired, "the deletionTimestamp of %s had passed, and a shorter grace period moved it from %s to %s",
				c.Name, c.Events[i-1].Pod.Deadline.Format(time.RFC3339), event.Pod.Deadline.Format(time.RFC3339))
		case i > 0:
			c.checkDecrease(*c.Events[i-1].Pod, *event.Pod)
		}
		switch grace := event.Pod.Grace; {
		case event.Type == history.Deleted && c.wait != nil:
			c.checkGracePeriod(event)
		case event.Type == history.Deleted:
			c.checkRemoval(event)
		case expired, grace == nil:
		case !event.Pod.Scheduled && *grace != 0:
			c.violated(Immediate, "%s has no node, and it is terminating with deletionGracePeriodSeconds %d", c.Name, *grace)
		case c.isSupervised(event) && !c.isRequested(*grace, *event.Pod) && !c.isConfirmed(event):
			c.violated(Requested, "%s has deletionGracePeriodSeconds %d, and no delete requested that", c.Name, *grace)
		}
	}
	if c.wait != nil {
		c.checkLate(*c.wait)
	}
}

// shortensExpired reports whether a delete shortened a grace period that had expired. The API server then makes it 0 or 1, and the
// deletionTimestamp the time of the delete (BeforeDelete in k8s.io/apiserver/pkg/registry/rest/delete.go). One that has not expired moves the
// deletionTimestamp to an earlier time.
func shortensExpired(before, after history.Pod) bool {
	return before.Grace != nil && after.Grace != nil && *after.Grace < *before.Grace && *after.Grace <= 1 && after.Deadline.After(*before.Deadline)
}

func (c *graceCheck) checkDecrease(before, after history.Pod) {
	switch {
	case before.Grace == nil:
	case after.Grace == nil:
		c.violated(Decreases, "%s was terminating, and it no longer is", c.Name)
	case *after.Grace > *before.Grace:
		c.violated(Decreases, "the deletionGracePeriodSeconds of %s changed from %d to %d", c.Name, *before.Grace, *after.Grace)
	case after.Deadline.After(*before.Deadline):
		c.violated(Decreases, "the deletionTimestamp of %s changed from %s to %s", c.Name, before.Deadline.Format(time.RFC3339), after.Deadline.Format(time.RFC3339))
	}
}

// checkRemoval checks that a pod with a node was removed by a request that allowed that.
func (c *graceCheck) checkRemoval(removal history.Event) {
	if !c.isSupervised(removal) || c.isRequested(0, *removal.Pod) {
		return
	}
	property := NeverEarly
	if c.Replaces {
		property = history.AtomicRemoval
	}
	c.violated(property, "%s was removed, and no delete requested gracePeriodSeconds 0", c.Name)
}

// isSupervised reports whether a pod has a node, and the pod garbage collector does not yet miss that node.
func (c *graceCheck) isSupervised(event history.Event) bool {
	return event.Pod.Scheduled && (c.wait != nil || event.At-c.Events[0].At < unsupervised)
}

// isConfirmed reports whether the kubelet may have set the grace period to 0, because no container runs.
func (c *graceCheck) isConfirmed(event history.Event) bool {
	return c.wait != nil && *event.Pod.Grace == 0 && !event.Pod.Running
}

// roundedOff is by how much a grace period may be shorter than requested, as a deletionTimestamp has no fractions of a second.
const roundedOff = time.Second

// checkGracePeriod checks that a pod with a running container, which ignores SIGTERM, was removed only after the grace period. It begins with
// the first delete. One that shortens it counts from there, too, and ends it at once if that time has passed.
func (c *graceCheck) checkGracePeriod(removal history.Event) {
	if !c.ranWhenDeleted() {
		return
	}
	if len(c.deletes) == 0 {
		c.violated(FullGrace, "%s was removed while its container ran, and no client deleted it", c.Name)
		return
	}
	first, end := c.deletes[0].Call, time.Duration(math.MaxInt64)
	for _, request := range c.deletes {
		end = min(end, max(request.Call, first+time.Duration(gracePeriod(request, *removal.Pod))*time.Second))
	}
	if removal.At < end-roundedOff {
		c.violated(FullGrace, "%s, whose container ignores SIGTERM, was removed %s after the first delete, %s before the end of its grace period",
			c.Name, (removal.At - first).Round(time.Millisecond), (end - removal.At).Round(time.Millisecond))
	}
}

// ranWhenDeleted reports whether a container ran in the last state before the pod was terminating.
func (c *graceCheck) ranWhenDeleted() bool {
	at := slices.IndexFunc(c.Events, func(event history.Event) bool { return event.Object.Terminating || event.Type == history.Deleted })
	return at > 0 && c.Events[at-1].Pod.Running
}

// checkLate checks that a terminating pod that no finalizer holds is removed while the driver waits for that, unless its grace period has
// expired only in the second half of that time. The first grace period counts: a kubelet that is stopping a container does not stop it sooner
// when the grace period becomes shorter (kubernetes/kubernetes#113606).
func (c *graceCheck) checkLate(wait history.Wait) {
	deleted := slices.IndexFunc(c.Events, func(event history.Event) bool { return event.Object.Terminating })
	released := slices.IndexFunc(c.Events, func(event history.Event) bool { return event.Object.Terminating && event.Object.Finalizers == "" })
	if last := c.Last(); released < 0 || last.Type == history.Deleted && last.At <= wait.To {
		return
	}
	expired := max(c.Events[released].At, c.Events[deleted].At+time.Duration(*c.Events[deleted].Pod.Grace)*time.Second)
	if expired < (wait.From+wait.To)/2 {
		c.violated(Removed, "the grace period of %s has expired, and it was not removed within %s", c.Name, (wait.To - expired).Round(time.Second))
	}
}

// isRequested reports whether a delete may have set a grace period.
func (c *graceCheck) isRequested(grace int64, pod history.Pod) bool {
	return slices.ContainsFunc(c.deletes, func(request history.Request) bool {
		requested := gracePeriod(request, pod)
		elapsed := request.Return - c.deletes[0].Call
		// A grace period that is shorter than the time since the first delete becomes 1 (BeforeDelete in k8s.io/apiserver).
		cut := grace == 1 && requested > 0 && time.Duration(requested)*time.Second < elapsed+roundedOff
		return requested == grace || cut
	})
}

// gracePeriod is the grace period that a delete of a pod requests, in seconds.
func gracePeriod(request history.Request, pod history.Pod) int64 {
	switch grace := request.Operation.Grace; {
	case grace == nil:
		return pod.Termination
	case *grace < 0:
		return 1 // as upstream takes negative values
	default:
		return *grace
	}
}
