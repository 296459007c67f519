package history

// observed is what the watch without a selector has shown of one object, from its creation on.
type observed struct {
	name   string
	events []Event
	// replaces reports that finalizers held an earlier object of the name. A request that has emptied those may remove this object.
	replaces bool
}

// observed are the objects that the watch without a selector has shown, by uid, as far as their events matter.
func (h *History) observed(matters func(Event) bool) map[string]*observed {
	found, held := map[string]*observed{}, map[string]bool{}
	for _, stream := range h.Streams {
		if stream.ID != h.Streams[0].ID {
			continue
		}
		for _, event := range stream.Events {
			if event.Type == Bookmark || !matters(event) {
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
