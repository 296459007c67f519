package history

import "slices"

// observed is what the watch without a selector has shown of one object, from its creation on.
type observed struct {
	name   string
	events []Event
	// replaces reports that finalizers held an earlier object of the name. A request that has emptied those may remove this object.
	replaces bool
}

// observed are the objects of the round that the watch without a selector has shown, by uid.
func (h *History) observed() map[string]*observed {
	found, held := map[string]*observed{}, map[string]bool{}
	for _, stream := range h.Streams {
		if stream.ID != h.Streams[0].ID {
			continue
		}
		for _, event := range stream.Events {
			if !slices.Contains(h.Names, event.Name) {
				continue
			}
			if found[event.Object.UID] == nil {
				found[event.Object.UID] = &observed{name: event.Name, replaces: held[event.Name]}
			}
			held[event.Name] = held[event.Name] || event.Object.Terminating && event.Object.Finalizers != ""
			found[event.Object.UID].events = append(found[event.Object.UID].events, event)
		}
	}
	return found
}

// isGone reports whether the object was removed.
func (r observed) isGone() bool { return r.last().Type == Deleted }

func (r observed) last() Event { return r.events[len(r.events)-1] }

// isHeld reports whether the object exists and has finalizers.
func (r observed) isHeld() bool { return !r.isGone() && r.last().Object.Finalizers != "" }

// seen is the history without the names of objects that may have changed while the watch without a selector had lost its position. A list has shown
// the result, but not what happened and when. Objects that the run does not select are left out, too.
func (h *History) seen() *History {
	changed := map[string]bool{}
	end, first := uint64(0), true
	for _, stream := range h.Streams {
		if stream.ID != h.Streams[0].ID {
			continue
		}
		if from := number(stream.From); !first && !stream.Resumed {
			for _, event := range stream.Missed {
				changed[event.Name] = true
			}
			for _, sighting := range h.sightings() {
				changed[sighting.name] = changed[sighting.name] || sighting.number > end && sighting.number <= from
			}
		}
		first, end = false, stream.end()
	}
	for _, name := range h.Names {
		changed[name] = changed[name] || len(h.Writers) > 0 && h.isStray(name)
	}
	seen := *h
	seen.Names, seen.unseen = nil, nil
	for _, name := range h.Names {
		if changed[name] {
			seen.unseen = append(seen.unseen, name)
		} else {
			seen.Names = append(seen.Names, name)
		}
	}
	return &seen
}

// end is the resourceVersion up to which the stream has delivered all changes.
func (s Stream) end() uint64 {
	if len(s.Events) == 0 {
		return number(s.From)
	}
	return number(s.Events[len(s.Events)-1].Object.ResourceVersion)
}
