package history_test

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// graphOf is the history of objects that own each other, as a watch has shown it. Objects without a name have their uid.
func graphOf(settled string, events []history.Event, requests ...history.Request) *history.History {
	whole := &history.History{Settled: settled, Requests: requests, Streams: []history.Stream{{ID: "the watch", From: "1", To: settled}}}
	for _, shown := range events {
		shown.Name = cmp.Or(shown.Name, shown.Object.UID)
		whole.Names = append(whole.Names, shown.Name)
		whole.Streams[0].Events = append(whole.Streams[0].Events, shown)
	}
	return whole
}

// seen is an event of an object with some owners.
func seen(kind, uid, resourceVersion string, with ...func(*model.Object)) history.Event {
	object := model.Object{UID: uid, ResourceVersion: resourceVersion}
	for _, set := range with {
		set(&object)
	}
	return history.Event{Type: kind, Object: object}
}

func ownedBy(owners ...model.Owner) func(*model.Object) {
	return func(object *model.Object) {
		for _, owner := range owners {
			object.Owners = object.Owners.With(owner.String())
		}
	}
}

func terminatingWith(finalizers ...string) func(*model.Object) {
	return func(object *model.Object) { object.Terminating, object.Finalizers = true, model.NamesOf(finalizers...) }
}

// named is an event of an object that is not named like its uid.
func named(name string, event history.Event) history.Event {
	event.Name = name
	return event
}

// calledAt is a request that was sent at some time.
func calledAt(second int, request history.Request) history.Request {
	request.Call = time.Duration(second) * time.Second
	return request
}

// deletedBy is a delete by a client.
func deletedBy(uid, policy string) history.Request {
	return history.Request{
		Name: uid, Operation: model.Operation{Verb: model.Delete, UID: uid, Policy: policy}, Outcome: model.Outcome{Code: 200},
	}
}

func TestTheGarbageCollectorKeepsItsPromises(t *testing.T) {
	a, other := model.Owner{Name: "a", UID: "a"}, model.Owner{Name: "b", UID: "b"}
	blocking := model.Owner{Name: "a", UID: "a", Blocks: true}
	cluster := model.Owner{Name: "role", UID: "role"}
	foreground, orphaning := terminatingWith(model.Foreground), terminatingWith(model.Orphan)
	for name, test := range map[string]struct {
		events   []history.Event
		requests []history.Request
		broken   *history.Property
	}{
		"a dependent goes after its owner": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Deleted, "a", "4"),
				seen(history.Deleted, "d", "5", ownedBy(a)),
			}, []history.Request{deletedBy("a", model.PolicyBackground)}, nil,
		},
		"a dependent goes before its owner": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Deleted, "d", "4", ownedBy(a)),
			}, nil, history.OwnershipKept,
		},
		"a client deletes a dependent": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Deleted, "d", "4", ownedBy(a)),
			}, []history.Request{deletedBy("d", "")}, nil,
		},
		"an object without owners goes": {
			[]history.Event{seen(history.Added, "d", "3"), seen(history.Deleted, "d", "4")}, nil, history.OwnershipKept,
		},
		"one of two owners is left": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "b", "3"), seen(history.Added, "d", "4", ownedBy(a, other)),
				seen(history.Deleted, "a", "5"), seen(history.Deleted, "d", "6", ownedBy(a, other)),
			}, []history.Request{deletedBy("a", "")}, history.OwnershipKept,
		},
		"the owner waits": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(blocking)), seen(history.Modified, "a", "4", foreground),
				seen(history.Deleted, "d", "5", ownedBy(blocking)), seen(history.Deleted, "a", "6", foreground),
			}, []history.Request{deletedBy("a", model.PolicyForeground)}, nil,
		},
		"the owner does not wait": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(blocking)), seen(history.Modified, "a", "4", foreground),
				seen(history.Deleted, "a", "5", foreground), seen(history.Deleted, "d", "6", ownedBy(blocking)),
			}, []history.Request{deletedBy("a", model.PolicyForeground)}, history.OwnershipBlocked,
		},
		"a dependent that does not block": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Modified, "a", "4", foreground),
				seen(history.Deleted, "a", "5", foreground), seen(history.Deleted, "d", "6", ownedBy(a)),
			}, []history.Request{deletedBy("a", model.PolicyForeground)}, nil,
		},
		"a client no longer wants the owner to wait": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(blocking)), seen(history.Modified, "a", "4", foreground),
				seen(history.Deleted, "a", "5", foreground), seen(history.Deleted, "d", "6", ownedBy(blocking)),
			}, []history.Request{deletedBy("a", model.PolicyForeground), deletedBy("a", model.PolicyBackground)}, nil,
		},
		"the owner of the owner is gone": {
			[]history.Event{
				seen(history.Added, "a", "2", ownedBy(other)), seen(history.Added, "d", "3", ownedBy(blocking)),
				seen(history.Modified, "a", "4", ownedBy(other), foreground), seen(history.Deleted, "a", "5", ownedBy(other), foreground),
				seen(history.Deleted, "d", "6", ownedBy(blocking)),
			}, []history.Request{deletedBy("a", model.PolicyForeground)}, history.OwnershipOverruled,
		},
		"the owner's former owner is gone": {
			[]history.Event{
				seen(history.Added, "b", "2"), seen(history.Added, "a", "3", ownedBy(model.Owner{UID: "gone"})), seen(history.Added, "d", "4", ownedBy(blocking)),
				seen(history.Modified, "a", "5", ownedBy(other), foreground), seen(history.Deleted, "a", "6", ownedBy(other), foreground),
				seen(history.Deleted, "d", "7", ownedBy(blocking)),
			}, []history.Request{deletedBy("a", model.PolicyForeground)}, history.OwnershipOverruled,
		},
		"foreground deletions block each other": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(blocking)),
				seen(history.Modified, "d", "4", foreground, ownedBy(blocking)),
				seen(history.Modified, "a", "5", foreground, ownedBy(model.Owner{UID: "d", Blocks: true})),
			}, nil, history.OwnershipCycles,
		},
		"a foreground deletion that nothing blocks": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Modified, "a", "5", foreground),
			}, nil, history.OwnershipCompleted,
		},
		"an owner is added to what must be deleted": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(other)), seen(history.Modified, "d", "4", ownedBy(a)),
				seen(history.Deleted, "d", "5", ownedBy(a)),
			}, nil, history.OwnershipLatest,
		},
		"an object replaces one that was held": {
			[]history.Event{
				named("n", seen(history.Added, "x", "2")), named("n", seen(history.Modified, "x", "3", orphaning)),
				named("n", seen(history.Deleted, "x", "4", orphaning)), named("n", seen(history.Added, "d", "5")),
				named("n", seen(history.Deleted, "d", "6")),
			}, []history.Request{deletedBy("x", model.PolicyOrphan)}, history.AtomicRemoval,
		},
		"a dependent is orphaned": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Modified, "a", "4", orphaning),
				seen(history.Modified, "d", "5"), seen(history.Deleted, "a", "6", orphaning),
			}, []history.Request{deletedBy("a", model.PolicyOrphan)}, nil,
		},
		"a dependent is not orphaned": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Modified, "a", "4", orphaning),
				seen(history.Deleted, "a", "5", orphaning), seen(history.Deleted, "d", "6", ownedBy(a)),
			}, []history.Request{deletedBy("a", model.PolicyOrphan)}, history.OwnershipOrphaned,
		},
		"a client adds a reference meanwhile": {
			[]history.Event{
				seen(history.Added, "a", "2"), seen(history.Added, "d", "3"), seen(history.Modified, "a", "4", orphaning),
				seen(history.Modified, "d", "5", ownedBy(a)), seen(history.Deleted, "a", "6", orphaning), seen(history.Deleted, "d", "7", ownedBy(a)),
			}, []history.Request{deletedBy("a", model.PolicyOrphan)}, nil,
		},
		"a dependent is forgotten": {
			[]history.Event{seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(a)), seen(history.Deleted, "a", "4")},
			[]history.Request{deletedBy("a", "")}, history.OwnershipCollected,
		},
		"an owner is forgotten": {
			[]history.Event{seen(history.Added, "a", "2"), seen(history.Modified, "a", "4", foreground)},
			[]history.Request{deletedBy("a", model.PolicyForeground)}, history.OwnershipCompleted,
		},
		"a dependent goes before its cluster-scoped owner": {
			[]history.Event{seen(history.Added, "d", "2", ownedBy(cluster)), at(3, seen(history.Deleted, "d", "3", ownedBy(cluster)))},
			[]history.Request{calledAt(4, deletedBy("role", ""))}, history.OwnershipKept,
		},
		"a dependent goes when its cluster-scoped owner may be gone": {
			[]history.Event{seen(history.Added, "d", "2", ownedBy(cluster)), at(5, seen(history.Deleted, "d", "3", ownedBy(cluster)))},
			[]history.Request{calledAt(4, deletedBy("role", ""))}, nil,
		},
		"a dependent of the cluster-scoped owner is forgotten": {
			[]history.Event{seen(history.Added, "d", "2", ownedBy(cluster))}, []history.Request{deletedBy("role", "")}, history.OwnershipCollected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			broken := map[*history.Property]bool{}
			whole := graphOf("9", test.events, test.requests...)
			whole.ClusterOwner = &cluster
			for _, finding := range whole.Check() {
				broken[finding.Property] = true
			}
			if test.broken == nil {
				g.Expect(broken).To(BeEmpty())
			} else {
				g.Expect(broken).To(HaveKey(test.broken))
			}
		})
	}
}

func TestUncollectedIsWhatTheGarbageCollectorMustActOn(t *testing.T) {
	g := NewWithT(t)
	owned := func(uid string) model.Names { return model.NamesOf(model.Owner{Name: "n", UID: uid}.String()) }
	g.Expect(history.Uncollected(map[string]model.Object{
		"owner": {UID: "o"}, "kept": {UID: "k", Owners: owned("o")}, "abandoned": {UID: "a", Owners: owned("gone")},
		"waiting": {UID: "w", Terminating: true, Finalizers: model.Foreground},
	})).To(Equal([]string{"abandoned", "waiting"}))
}

func TestOwnersAndDependentsConcernEachOther(t *testing.T) {
	g := NewWithT(t)
	whole := graphOf("9", []history.Event{seen(history.Added, "a", "2"), seen(history.Added, "d", "3", ownedBy(model.Owner{Name: "a", UID: "a"}))})
	g.Expect(whole.Concerns("a", "d")).To(BeTrue())
	g.Expect(whole.Concerns("d", "a")).To(BeTrue())
	g.Expect(whole.Concerns("a", "b")).To(BeFalse())
}
