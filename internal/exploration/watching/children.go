package watching

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Children records what an operator creates for the objects of a round: all objects of every watchable kind in the namespaces of the round that name
// one of them.
type Children struct {
	with *client.Client
	// kind is that of the round's objects, which are no children.
	kind string
	// lasting watches the namespace of the run, and passing those of a round; nil if it has none.
	lasting, passing *journal.Watches

	mu      sync.Mutex
	parents []string
	began   time.Time
	events  []history.Child
	// read are how many events of each of the watches are in events.
	read map[*journal.Watches]int
	// living are the children that exist, by uid.
	living map[string]living
}

// living is a child that exists, with the name of its parent.
type living struct {
	object *client.Object
	parent string
}

// WatchChildren watches the namespace of a run, in which objects are of a kind. Stop ends that.
func WatchChildren(ctx context.Context, with *client.Client, kind, namespace string) (*Children, error) {
	c := &Children{with: with, kind: kind, lasting: journal.NewWatches(with, "")}
	if response := controller.WatchChildren(ctx, with, c.lasting, namespace); response.Err != nil {
		c.Stop()
		return nil, fmt.Errorf("watch what the operator creates: %w", response.Err)
	}
	return c, nil
}

// StartRound forgets earlier rounds, and watches for children of some objects, also in other namespaces.
func (c *Children) StartRound(ctx context.Context, began time.Time, parents, namespaces []string) error {
	if c.passing != nil {
		c.passing.Stop()
		c.passing = nil
	}
	c.mu.Lock()
	c.lasting.Journal.Forget()
	c.parents, c.began, c.events, c.read, c.living = parents, began, nil, map[*journal.Watches]int{}, map[string]living{}
	c.mu.Unlock()
	if len(namespaces) == 0 {
		return nil
	}
	c.passing = journal.NewWatches(c.with, "")
	for _, namespace := range namespaces {
		if response := controller.WatchChildren(ctx, c.with, c.passing, namespace); response.Err != nil {
			return fmt.Errorf("watch what the operator creates: %w", response.Err)
		}
	}
	return nil
}

// Events are those of the children of this round, in order of arrival. It fails when events may be missing.
func (c *Children) Events() ([]history.Child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.catchUp()
	return slices.Clone(c.events), err
}

// Of are the children of an object that exist, in the order of their names.
func (c *Children) Of(parent string) []*client.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.catchUp() // a later call of Events returns it
	var children []*client.Object
	for _, child := range c.living {
		if child.parent == parent {
			children = append(children, child.object)
		}
	}
	slices.SortFunc(children, func(a, b *client.Object) int { return cmp.Compare(ChildName(a), ChildName(b)) })
	return children
}

// Stop ends the watches.
func (c *Children) Stop() {
	c.lasting.Stop()
	if c.passing != nil {
		c.passing.Stop()
	}
}

// catchUp takes the events that the watches have received since the last time.
func (c *Children) catchUp() error {
	for _, watches := range []*journal.Watches{c.lasting, c.passing} {
		if watches == nil {
			continue
		}
		count := 0
		events, err := watches.Journal.Read(func(journal.Event) bool {
			count++
			return count > c.read[watches]
		})
		c.read[watches] = count
		for _, event := range events {
			c.note(event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// note takes an event of a child.
func (c *Children) note(event journal.Event) {
	at := slices.IndexFunc(c.parents, func(name string) bool {
		parent := &client.Object{}
		parent.SetName(name)
		return event.Object.GetKind() != c.kind && controller.IsChild(event.Object, parent)
	})
	uid := string(event.Object.GetUID())
	before, known := c.living[uid]
	if at < 0 && !known {
		return
	}
	parent := before.parent
	if at >= 0 {
		parent = c.parents[at]
	}
	c.events = append(c.events, history.Child{Parent: parent, Event: history.Event{
		At: event.At.Sub(c.began), Type: string(event.Type), Name: ChildName(event.Object), Object: Snapshot(event.Object),
	}})
	if c.living[uid] = (living{event.Object, parent}); event.Type == watch.Deleted {
		delete(c.living, uid)
	}
}

// ChildName is the name that a child has in histories.
func ChildName(child *client.Object) string { return child.GetKind() + "/" + child.GetName() }
