package history

import "slices"

// Observed is what the watch without a selector has shown of one object, from its creation on.
type Observed struct {
	// Name is that of the object, and Events are those about it, in the order of their arrival.
	Name   string
	Events []Event
	// Replaces reports that finalizers held an earlier object of the name. A request that has emptied those may remove this object.
	Replaces bool
}

// Observed are the objects of the round that the watch without a selector has shown, by uid.
func (h *History) Observed() map[string]*Observed {
	found, held := map[string]*Observed{}, map[string]bool{}
	for _, stream := range h.Streams {
		if stream.ID != h.Streams[0].ID {
			continue
		}
		for _, event := range stream.Events {
			if !slices.Contains(h.Names, event.Name) {
				continue
			}
			if found[event.Object.UID] == nil {
				found[event.Object.UID] = &Observed{Name: event.Name, Replaces: held[event.Name]}
			}
			held[event.Name] = held[event.Name] || event.Object.Terminating && event.Object.Finalizers != ""
			found[event.Object.UID].Events = append(found[event.Object.UID].Events, event)
		}
	}
	return found
}

// IsGone reports whether the object was removed.
func (r Observed) IsGone() bool { return r.Last().Type == Deleted }

// Last is the last event.
func (r Observed) Last() Event { return r.Events[len(r.Events)-1] }

// IsHeld reports whether the object exists and has finalizers.
func (r Observed) IsHeld() bool { return !r.IsGone() && r.Last().Object.Finalizers != "" }

// Seen is the history without the names of objects that may have changed while the watch without a selector had lost its position. A list has shown
// the result, but not what happened and when. Objects that the run does not select are left out, too.
func (h *History) Seen() *History {
	changed := map[string]bool{}
	end, first := uint64(0), true
	for _, stream := range h.Streams {
		if stream.ID != h.Streams[0].ID {
			continue
		}
		if from := Number(stream.From); !first && !stream.Resumed {
			for _, event := range stream.Missed {
				changed[event.Name] = true
			}
			for _, sighting := range h.Sightings() {
				changed[sighting.Name] = changed[sighting.Name] || sighting.Number > end && sighting.Number <= from
			}
		}
		first, end = false, stream.end()
	}
	for _, name := range h.Names {
		changed[name] = changed[name] || len(h.Writers) > 0 && h.IsStray(name)
	}
	seen := *h
	seen.Names, seen.Unseen = nil, nil
	for _, name := range h.Names {
		if changed[name] {
			seen.Unseen = append(seen.Unseen, name)
		} else {
			seen.Names = append(seen.Names, name)
		}
	}
	return &seen
}

// end is the resourceVersion up to which the stream has delivered all changes.
func (s Stream) end() uint64 {
	if len(s.Events) == 0 {
		return Number(s.From)
	}
	return Number(s.Events[len(s.Events)-1].Object.ResourceVersion)
}
