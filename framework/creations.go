package framework

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// creations are the uids of the objects that a spec has created. When a name is reused they distinguish the new object from earlier ones,
// if a response was lost.
type creations struct {
	mu   sync.Mutex
	uids map[string][]types.UID
}

// of returns the uids for an object's kind, namespace and name, the oldest first.
func (c *creations) of(object *Object) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uids[identity(object)]
}

func (c *creations) note(object *Object, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uids == nil {
		c.uids = map[string][]types.UID{}
	}
	c.uids[identity(object)] = append(c.uids[identity(object)], uid)
}

// identity identifies an object within its cluster.
func identity(object *Object) string {
	return strings.Join([]string{object.GroupVersionKind().GroupKind().String(), object.GetNamespace(), object.GetName()}, "/")
}
