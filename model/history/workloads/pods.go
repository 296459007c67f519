package workloads

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// checkPod checks why a pod was deleted.
func (r *record) checkPod(uid string, known *life) []history.Violation {
	at := known.deletion()
	if at < 0 || r.isDeleted(uid, known.events[at].At, always) || r.hasCause(known, at, 0) {
		return nil
	}
	controller := r.lives[lastController(known, at)]
	if controller == nil {
		return []history.Violation{broken(Kept, known.name, "%s was deleted, and it has no workload: %s", known.name, known.before(at).Object)}
	}
	return []history.Violation{broken(Kept, known.name, "%s was deleted, and %s had no cause for that", known.name, controller.name)}
}

// hasCause reports whether a controller may have had a cause for the deletion of a pod that an event shows. If its workload deleted it, that is
// as many deletions more than deletedBy counts as are uncounted.
func (r *record) hasCause(known *life, at int, uncounted int64) bool {
	deletion, before := known.events[at], known.before(at)
	version, owners := versionOf(deletion), model.OwnersOf(before.Object.Owners)
	isCollected := len(owners) > 0 && !slices.ContainsFunc(owners, func(owner model.Owner) bool { return r.isSolid(owner.UID, version) })
	isCollected = isCollected || len(owners) == 0 && r.wasCollected(known, at)
	if isCollected || r.wasAwaited(known, at) || before.Workload.Finished || r.Unsupervised && deletion.At-known.first().At >= unsupervised {
		return true
	}
	controller := r.lives[lastController(known, at)]
	return controller != nil && r.mayDelete(controller, known, version, uncounted)
}

// lastController is the uid of the last workload that controlled a pod up to an event. One that has released the pod may not know that.
func lastController(known *life, at int) string {
	for _, event := range slices.Backward(known.events[:at+1]) {
		if event.Workload.Controller != "" {
			return event.Workload.Controller
		}
	}
	return ""
}

// mayDelete reports whether a workload may have had a cause to delete a pod by a resourceVersion. A controller may act on an earlier state.
func (r *record) mayDelete(controller, known *life, version uint64, uncounted int64) bool {
	states := controller.until(version)
	template := known.first().Workload.Template
	hasOther := slices.ContainsFunc(states, func(event history.Event) bool { return event.Workload.Template != template })
	switch controller.first().Workload.Kind {
	case statefulSet:
		ordinal := ordinalOf(known.name)
		return hasOther || slices.ContainsFunc(states, func(event history.Event) bool { return event.Workload.Replicas <= ordinal })
	case daemonSet:
		return hasOther || len(r.adopted(controller, version)) > 0
	case job:
		return r.mayEnd(controller, version)
	}
	return r.deletedBy(controller, version)+uncounted <= decreases(states)+int64(len(r.adopted(controller, version)))
}

// ordinalOf is the ordinal in the name of a pod of a StatefulSet.
func ordinalOf(name string) int64 {
	ordinal, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 64)
	if err != nil {
		return -1
	}
	return ordinal
}

// mayEnd reports whether a Job may delete its pods, as it requires fewer, or has ended: one of its pods has failed or was deleted. No Job of a round
// retries.
func (r *record) mayEnd(controller *life, version uint64) bool {
	uid := controller.first().Object.UID
	states := controller.until(version)
	return decreases(states) > 0 || slices.ContainsFunc(r.events, func(event history.Event) bool {
		return versionOf(event) < version && event.Workload.Controller == uid && (event.Workload.Failed || event.Object.Terminating || event.Type == history.Deleted)
	})
}

// decreases is by how much a workload has reduced the number of its pods, over all its states.
func decreases(states []history.Event) (sum int64) {
	for i := 1; i < len(states); i++ {
		sum += max(states[i-1].Workload.Replicas-states[i].Workload.Replicas, 0)
	}
	return sum
}

// adopted are the pods that a workload has begun to control after their creation, each as often as that.
func (r *record) adopted(controller *life, version uint64) []string {
	uid, names := controller.first().Object.UID, []string{}
	for _, other := range r.lives {
		for i, event := range other.events {
			if i > 0 && versionOf(event) <= version && event.Workload.Controller == uid && other.events[i-1].Workload.Controller != uid {
				names = append(names, other.name)
			}
		}
	}
	return names
}

// deletedBy is how many pods of a workload were deleted by a resourceVersion, by no client.
func (r *record) deletedBy(controller *life, version uint64) (count int64) {
	uid := controller.first().Object.UID
	for _, other := range r.sorted() {
		known := r.lives[other]
		at := known.deletion()
		if at < 0 || known.first().Workload.Kind != pod || versionOf(known.events[at]) > version || lastController(known, at) != uid {
			continue
		}
		if !r.isDeleted(other, known.events[at].At, always) && !known.before(at).Workload.Finished {
			count++
		}
	}
	return count
}

// checkSurplus checks that no workload has created more pods than it has ever required at the same time.
func (r *record) checkSurplus() []history.Violation {
	var violations []history.Violation
	counted := map[string]*count{}
	for _, event := range r.events {
		switch event.Workload.Kind {
		case replicationController, replicaSet, job:
			if counted[event.Object.UID] == nil {
				counted[event.Object.UID] = &count{life: r.lives[event.Object.UID], active: map[string]bool{}}
			}
			counted[event.Object.UID].required = max(counted[event.Object.UID].required, event.Workload.Replicas)
		case pod:
			if c := counted[r.lives[event.Object.UID].first().Workload.Controller]; c != nil {
				violations = append(violations, c.add(event)...)
			}
		}
	}
	return violations
}

// count counts the pods that a workload has created.
type count struct {
	*life
	// required is the largest number that it has required, and active are its pods by name.
	required int64
	active   map[string]bool
	// ended is set when its count no longer matters: a pod was released, which may come back, or there were too many.
	ended bool
}

// add counts a pod of the workload as an event shows it.
func (c *count) add(event history.Event) []history.Violation {
	delete(c.active, event.Name)
	switch {
	case event.Type != history.Deleted && event.Workload.Controller != c.first().Object.UID:
		c.ended = true
	case event.Type != history.Deleted && isActive(event):
		c.active[event.Name] = true
	}
	if c.ended || int64(len(c.active)) <= c.required {
		return nil
	}
	c.ended = true
	return []history.Violation{broken(Surplus, c.name, "%s has %d pods, and has never required more than %d: %s", c.name,
		len(c.active), c.required, strings.Join(slices.Sorted(maps.Keys(c.active)), ", "))}
}
