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

// begin notes that the spec asks for an object's deletion. It says whether nothing else can have begun it: the object had no owner
// to go with, and the spec has asked neither for its deletion nor for anything that it is in.
func (d *deletions) begin(object *Object) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	uid := object.GetUID()
	first := !d.swept && !d.uids[uid] && uid != "" && object.GetDeletionTimestamp() == nil && len(object.GetOwnerReferences()) == 0
	if d.uids == nil {
		d.uids = map[types.UID]bool{}
	}
	d.uids[uid] = true
	d.swept = d.swept || object.GetKind() == "Namespace" || object.GetKind() == "CustomResourceDefinition"
	return first
}

// sweep notes that the spec asks for a collection's deletion.
func (d *deletions) sweep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = true
}
