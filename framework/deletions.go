package framework

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// deletions is what a spec has asked to go.
type deletions struct {
	mu   sync.Mutex
	uids map[types.UID]bool
	// swept says that the spec has asked for more than one object to go: whatever goes now may go for that.
	swept bool
}

// before says of a delete that is about to be asked for whether nothing else can begin the object's deletion (it has no
// owner to go with, and the spec has asked neither for its deletion nor for anything that it is in), and whether that
// has begun already.
func (d *deletions) before(object *Object) (begins, repeats bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	uid := object.GetUID()
	repeats = d.uids[uid] || object.GetDeletionTimestamp() != nil
	return !repeats && !d.swept && uid != "" && len(object.GetOwnerReferences()) == 0, repeats
}

// note notes that an object's deletion was asked for, and not refused.
func (d *deletions) note(object *Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil {
		d.uids = map[types.UID]bool{}
	}
	d.uids[object.GetUID()] = true
	d.swept = d.swept || object.GetKind() == "Namespace" || object.GetKind() == "CustomResourceDefinition"
}

// sweep notes that the deletion of a collection was asked for.
func (d *deletions) sweep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = true
}
