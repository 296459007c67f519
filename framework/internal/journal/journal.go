// Package journal records what happens to the objects of a worker: watches, one a kind and namespace, that all write
// into one journal.
package journal

import (
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
	// broken says why events may be missing: a watch that could not be resumed.
	broken error
}

// Add writes an event down.
func (j *Journal) Add(event Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

// Fail says that events may be missing from now on, until what is there is forgotten.
func (j *Journal) Fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
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
// anew when it is needed again.
func (j *Journal) Forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events, j.broken = nil, nil
}
