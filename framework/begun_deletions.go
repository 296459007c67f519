package framework

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// deletions are the objects that a spec has deleted.
type deletions struct {
	mu   sync.Mutex
	uids map[types.UID]bool
	// swept is set after a delete that may have affected any object.
	swept bool
}

// repeats reports whether the object's deletion has started before a delete is sent.
func (d *deletions) repeats(object *Object) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.uids[object.GetUID()] || object.GetDeletionTimestamp() != nil
}

// begins reports whether only the next delete can start the object's deletion: it has no owner, and the spec has deleted neither it nor its
// namespace.
func (d *deletions) begins(object *Object) bool {
	if d.repeats(object) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.swept && object.GetUID() != "" && len(object.GetOwnerReferences()) == 0
}

// note records a delete that was not refused.
func (d *deletions) note(object *Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil {
		d.uids = map[types.UID]bool{}
	}
	d.uids[object.GetUID()] = true
	d.swept = d.swept || object.GetKind() == "Namespace" || object.GetKind() == "CustomResourceDefinition"
}

// sweep records a deletecollection.
func (d *deletions) sweep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = true
}
