package framework

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// deletions are the objects that a spec has deleted.
type deletions struct {
	mu   sync.Mutex
	uids map[types.UID]bool
	// swept is set once the spec has deleted more than one object at once: any object may go for that.
	swept bool
}

// repeats reports whether the object's deletion has begun before a delete is sent.
func (d *deletions) repeats(object *Object) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uids[object.GetUID()] || object.GetDeletionTimestamp() != nil
}

// begins reports whether nothing but the delete that is about to be sent can begin the object's deletion: it has no owner to go with,
// and the spec has deleted neither it nor anything that it is in.
func (d *deletions) begins(object *Object) bool {
	if d.repeats(object) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.swept && object.GetUID() != "" && len(object.GetOwnerReferences()) == 0
}

// note notes a delete that was not refused.
func (d *deletions) note(object *Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil {
		d.uids = map[types.UID]bool{}
	}
	d.uids[object.GetUID()] = true
	d.swept = d.swept || object.GetKind() == "Namespace" || object.GetKind() == "CustomResourceDefinition"
}

// sweep notes a deletecollection.
func (d *deletions) sweep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = true
}
