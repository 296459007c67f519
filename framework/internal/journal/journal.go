// Package journal records what happens to the objects of a worker: watches, one a kind and namespace, that all write
// into one journal.
package journal

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch: an object as it was at that moment. Events of one kind stand in the order in which
// the API server made them; between kinds the order is that of arrival, so only events of one kind are compared.
type Event struct {
	At     time.Time
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Journal is where all watches of a session write, in order of arrival.
type Journal struct {
	mu     sync.Mutex
	events []Event
	// size is about how much memory they take, in bytes.
	size int
	// broken says why events may be missing: a watch that could not be resumed, or one that shows too much.
	broken error
}

// sizeLimit bounds what a journal holds, in bytes as sizeOf counts them: a hundred times what the largest of specs sees.
const sizeLimit = 64 << 20

// Add writes an event down. Where too much has been seen already, the event is dropped: a server may repeat itself for ever.
func (j *Journal) Add(event Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.size += sizeOf(event.Object.Object)
	if j.size > sizeLimit {
		j.fail(fmt.Errorf("the watches have shown more than %d MiB: no run makes so much", sizeLimit>>20))
		return
	}
	j.events = append(j.events, event)
}

// nodeSize is about what each value takes beside its text, in bytes.
const nodeSize = 32

// sizeOf is about how much memory a decoded value takes, in bytes.
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

// Fail says that events may be missing from now on, until what is there is forgotten.
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

// Read returns the events that the condition wants; nil wants all. It fails when events may be missing.
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

// Forget drops what earlier specs left. What they missed does not concern those that follow: a watch that was lost begins
// again when it is needed again.
func (j *Journal) Forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events, j.size, j.broken = nil, 0, nil
}
