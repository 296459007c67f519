// Package journal records the events of a worker's objects. There is one watch for each kind and namespace, and all write to one journal.
package journal

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one watch event with the object at that time. Events of one kind are in the API server's order. Between kinds the order is that
// of arrival, so only events of one kind are compared.
type Event struct {
	At     time.Time
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Journal collects the events of all watches of a session, in order of arrival.
type Journal struct {
	mu     sync.Mutex
	events []Event
	// size is the approximate memory of the events, in bytes.
	size int
	// broken is why events may be missing: a watch that could not be resumed, or too many events.
	broken error
}

// sizeLimit limits a journal, in bytes as sizeOf counts them: a hundred times what the largest spec needs.
const sizeLimit = 64 << 20

// Add records an event. It drops events beyond the limit, because a server may repeat itself forever.
func (j *Journal) Add(event Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.size += sizeOf(event.Object.Object)
	if j.size > sizeLimit {
		j.fail(fmt.Errorf("the watches have received more than %d MiB, more than any run creates", sizeLimit>>20))
		return
	}
	j.events = append(j.events, event)
}

// nodeSize is the approximate overhead of each value, in bytes.
const nodeSize = 32

// sizeOf is the approximate memory of a decoded value, in bytes.
func sizeOf(value any) int {
	size := nodeSize
	switch value := value.(type) {
	case string:
		size += len(value)
	case []any:
		for _, element := range value {
			size += sizeOf(element)
		}
	case map[string]any:
		for name, element := range value {
			size += nodeSize + len(name) + sizeOf(element)
		}
	}
	return size
}

// Fail marks events as possibly missing, until Forget.
func (j *Journal) Fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail(err)
}

func (j *Journal) fail(err error) {
	if j.broken == nil {
		j.broken = err
	}
}

// Read returns the events that match; nil matches all. It fails when events may be missing.
func (j *Journal) Read(wanted func(Event) bool) ([]Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var events []Event
	for _, event := range j.events {
		if wanted == nil || wanted(event) {
			events = append(events, event)
		}
	}
	return events, j.broken
}

// Forget drops the events of earlier specs. A watch that an earlier spec lost starts again when it is needed.
func (j *Journal) Forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events, j.size, j.broken = nil, 0, nil
}
