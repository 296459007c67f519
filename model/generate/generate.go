// Package generate draws random operations. It knows no client and no clock: the same seed draws the same operations.
package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Intent is an operation before it is known what it will meet: what it requires of the object is what its client has seen of it.
type Intent struct {
	Verb model.Verb `json:"verb"`
	// Object is the object's index; -1 for a list (Select) and a deletecollection (Delete).
	Object int `json:"object"`
	// UID and ResourceVersion report that the operation requires those that its client saw last.
	UID             bool         `json:"uid,omitempty"`
	ResourceVersion bool         `json:"resourceVersion,omitempty"`
	Change          model.Change `json:"change,omitzero"`
	Policy          string       `json:"policy,omitempty"`
	DryRun          bool         `json:"dryRun,omitempty"`
	// Grace is the gracePeriodSeconds of a delete, or the terminationGracePeriodSeconds of a pod that is created; nil for none.
	Grace *int64 `json:"grace,omitempty"`
	// Unscheduled makes a pod that is created have no node.
	Unscheduled bool `json:"unscheduled,omitempty"`
	// Label is what the label selector of a list or deletecollection requires; empty for any.
	Label string `json:"label,omitempty"`
	// Read is the resourceVersion of a get or list: Recent, Any, or one of those that its client has seen.
	Read Read `json:"read,omitempty"`
	// Limit is the size of a list's pages; 0 for one page.
	Limit int `json:"limit,omitempty"`
	// Pause is how long the client waits before the operation.
	Pause time.Duration `json:"pause,omitempty"`
	// Release makes a patch remove the finalizer that the object was created with, and nothing else.
	Release bool `json:"release,omitempty"`
	// Namespace makes the operation one on the namespace of the object, and ClusterOwner on the cluster-scoped owner.
	Namespace    bool `json:"namespace,omitempty"`
	ClusterOwner bool `json:"clusterOwner,omitempty"`
}

// Read is how a get or list uses resourceVersion.
type Read string

const (
	// Recent sets no resourceVersion.
	Recent Read = ""
	// Any sets 0.
	Any Read = "any"
	// NotOlderThan sets the last resourceVersion that the client has seen.
	NotOlderThan Read = "not older than"
	// Exact sets the resourceVersion of the last list that the client has seen.
	Exact Read = "exact"
)

// Program is what one client does, one operation after the other.
type Program []Intent

// Options bound what is drawn.
type Options struct {
	// Clients, Operations and Objects are the numbers of clients, of the operations of each, and of objects.
	Clients, Operations, Objects int
	// Finalizers are those that objects may have, and Labels the values of the label.
	Finalizers, Labels []string
	// Owner is the name of an object that may own the other objects.
	Owner string
	// GarbageCollector reports that a garbage collector removes the finalizers of propagation policies.
	GarbageCollector bool
	// Status reports that objects have a status subresource.
	Status bool
	// Graph makes objects own each other, and leaves the removal of finalizers to the garbage collector and to releases.
	Graph bool
	// Pods makes the objects pods that are deleted gracefully, and whose termination no kubelet confirms; with Nodes, a kubelet runs them.
	Pods, Nodes bool
	// Namespaces makes clients delete the namespaces of the objects, too.
	Namespaces bool
}

// OwnerAt names an object of the round by its index, in the owners of a Change.
func OwnerAt(object int, blocks bool) string {
	return model.Owner{Name: ownerMark + strconv.Itoa(object), Blocks: blocks}.String()
}

// IndexOf is the index that OwnerAt has named; -1 if the owner is not one of those.
func IndexOf(owner model.Owner) int {
	index, err := strconv.Atoi(strings.TrimPrefix(owner.Name, ownerMark))
	if err != nil || !strings.HasPrefix(owner.Name, ownerMark) {
		return -1
	}
	return index
}

const ownerMark = "#"

// Names of owners in a Change that are not among the round's objects: a cluster-scoped object, and one in another namespace.
const (
	ClusterOwner   = "cluster-scoped"
	ElsewhereOwner = "elsewhere"
)

// Programs draws a program for each client.
func Programs(seed uint64, options Options) []Program {
	programs := make([]Program, options.Clients)
	for client := range programs {
		d := drawer{rand.New(rand.NewPCG(seed, uint64(client))), options, client, 0} //nolint:gosec // it must be reproducible
		for range options.Operations {
			programs[client] = append(programs[client], d.after(programs[client]))
		}
	}
	return programs
}

// drawer draws the operations of one client.
type drawer struct {
	*rand.Rand
	Options
	client, values int
}

// choice is what can be drawn, with its relative frequency.
type choice struct {
	weight int
	draw   func(*drawer, *Intent)
}

// inGraphs are the choices for objects that own each other. Every delete requires a uid, so that it is known which objects clients deleted.
var inGraphs = []choice{
	{48, func(d *drawer, i *Intent) {
		i.Verb, i.Change = model.Create, model.Change{Value: d.value(), Owners: d.ownersIn(i.Object)}
		if d.oneIn(4) {
			i.Change.Finalizers = new(model.NamesOf(d.Finalizers[0]))
		}
	}},
	{12, func(d *drawer, i *Intent) { i.Verb, i.Change = model.Patch, model.Change{Owners: d.ownersIn(i.Object)} }},
	{10, func(_ *drawer, i *Intent) { i.Verb, i.Release = model.Patch, true }},
	{20, func(d *drawer, i *Intent) {
		i.Verb, i.UID, i.Policy = model.Delete, true, d.policy()
		if d.oneIn(4) { // few of these deletes meet a dependent that blocks
			i.Policy = model.PolicyForeground
		}
	}},
	{6, func(_ *drawer, i *Intent) { i.Verb = model.Get }},
	{1, func(d *drawer, i *Intent) {
		i.Verb, i.Object, i.ClusterOwner, i.UID, i.Policy = model.Delete, 0, true, true, d.policy()
	}},
}

// ofPods are the choices for pods. Every delete requires a uid, so that it is known what was requested for each pod.
var ofPods = []choice{
	{30, func(d *drawer, i *Intent) {
		i.Verb, i.Change, i.Unscheduled = model.Create, model.Change{Value: d.value()}, d.oneIn(5)
		i.Grace = one(d, nil, new(int64(0)), new(int64(5)), new(int64(60)))
		if d.oneIn(4) {
			i.Change.Finalizers = new(model.NamesOf(d.Finalizers[0]))
		}
	}},
	{50, func(d *drawer, i *Intent) {
		i.Verb, i.UID = model.Delete, true
		i.Grace = one(d, nil, nil, new(int64(-1)), new(int64(0)), new(int64(1)), new(int64(20)), new(int64(40)), new(int64(90)))
	}},
	{12, func(_ *drawer, i *Intent) { i.Verb, i.Release = model.Patch, true }},
	{8, func(_ *drawer, i *Intent) { i.Verb = model.Get }},
}

// onNodes are the choices for pods that a kubelet runs. Their clients pause between operations, so that containers start and end meanwhile.
var onNodes = []choice{
	{34, func(d *drawer, i *Intent) {
		i.Verb, i.Change, i.Grace = model.Create, model.Change{Value: d.value()}, one(d, new(int64(1)), new(int64(4)), new(int64(12)))
		if d.oneIn(4) {
			i.Change.Finalizers = new(model.NamesOf(d.Finalizers[0]))
		}
	}},
	{36, func(d *drawer, i *Intent) {
		i.Verb, i.UID = model.Delete, true
		i.Grace = one(d, nil, nil, new(int64(-1)), new(int64(0)), new(int64(1)), new(int64(3)), new(int64(6)), new(int64(15)))
	}},
	{14, func(_ *drawer, i *Intent) { i.Verb, i.Release = model.Patch, true }},
	{16, func(_ *drawer, i *Intent) { i.Verb = model.Get }},
}

// longestPause limits the pauses between operations on pods that a kubelet runs.
const longestPause = 3 * time.Second

// inNamespaces are the choices for objects whose namespaces are deleted. Every delete of an object requires a uid, so that it is known which
// objects clients deleted.
var inNamespaces = []choice{
	{50, func(d *drawer, i *Intent) {
		i.Verb, i.Change = model.Create, model.Change{Value: d.value()}
		if d.oneIn(2) {
			i.Change.Finalizers = new(model.NamesOf(d.Finalizers[0]))
		}
	}},
	{10, func(_ *drawer, i *Intent) { i.Verb, i.Release = model.Patch, true }},
	{16, func(d *drawer, i *Intent) { i.Verb, i.Change = model.Patch, model.Change{Value: d.value()} }},
	{12, func(_ *drawer, i *Intent) { i.Verb, i.UID = model.Delete, true }},
	{8, func(_ *drawer, i *Intent) { i.Verb = model.Get }},
	{4, func(_ *drawer, i *Intent) { i.Verb, i.Namespace = model.Delete, true }},
}

// ofObjects are the choices for a few objects. They must live long enough to be held and released, and end often enough to be new.
var ofObjects = []choice{
	{14, func(d *drawer, i *Intent) { i.Verb, i.Change, i.DryRun = model.Create, d.content(), d.oneIn(15) }},
	{10, func(d *drawer, i *Intent) { i.Verb, i.Read = model.Get, d.read(Recent, Recent, Any, NotOlderThan) }},
	{12, func(d *drawer, i *Intent) {
		i.Verb, i.Change, i.DryRun = model.Update, d.change(), d.oneIn(15)
		i.UID, i.ResourceVersion = true, !d.oneIn(4)
	}},
	{16, func(d *drawer, i *Intent) {
		i.Verb, i.Change, i.ResourceVersion, i.DryRun = model.Patch, d.change(), d.oneIn(3), d.oneIn(15)
	}},
	{6, func(d *drawer, i *Intent) { i.Verb, i.Change = model.Apply, model.Change{Value: d.value()} }},
	{3, func(d *drawer, i *Intent) {
		i.Verb, i.UID, i.ResourceVersion = model.UpdateStatus, true, true
		if !d.Status {
			i.Verb, i.UID, i.ResourceVersion, i.Change = model.Patch, false, false, model.Change{Value: d.value()}
		}
	}},
	{16, func(d *drawer, i *Intent) {
		i.Verb, i.DryRun, i.UID, i.ResourceVersion = model.Delete, d.oneIn(12), d.oneIn(3), d.oneIn(5)
		i.Policy, i.Grace = d.policy(), d.grace()
	}},
	{3, func(d *drawer, i *Intent) {
		i.Verb, i.Object, i.Label, i.DryRun, i.Policy = model.Delete, -1, d.selector(), d.oneIn(8), d.policy()
	}},
	{10, func(d *drawer, i *Intent) {
		i.Verb, i.Object, i.Label, i.Read = model.Select, -1, d.selector(), d.read(Recent, Recent, Recent, Any, NotOlderThan, Exact)
		if i.Read == Recent && d.oneIn(3) {
			i.Limit = 1
		}
	}},
}

// after draws the operation that follows others. Some deletes follow a write at once. A server that decides by a cache misses what was written, by a
// deletecollection after a create, or by a delete after a write of finalizers. A delete with the new resourceVersion meets the writes of other
// clients between its check and its removal.
func (d *drawer) after(program Program) Intent {
	intent := d.intent()
	if len(program) == 0 || d.Graph || d.Pods || d.Namespaces {
		return intent
	}
	last := program[len(program)-1]
	if last.DryRun || !slices.Contains(writes, last.Verb) {
		return intent
	}
	switch d.IntN(6) {
	case 0:
		if last.Verb == model.Create {
			return Intent{Verb: model.Delete, Object: -1, Label: *last.Change.Label}
		}
	case 1:
		finalizers := last.Change.Finalizers != nil && *last.Change.Finalizers != ""
		return Intent{Verb: model.Delete, Object: last.Object, ResourceVersion: !finalizers}
	}
	return intent
}

// writes are the writes of one object after which it exists.
var writes = []model.Verb{model.Create, model.Update, model.Patch, model.Apply}

func (d *drawer) intent() Intent {
	choices, total := ofObjects, 0
	switch {
	case d.Graph:
		choices = inGraphs
	case d.Nodes:
		choices = onNodes
	case d.Pods:
		choices = ofPods
	case d.Namespaces:
		choices = inNamespaces
	}
	for _, choice := range choices {
		total += choice.weight
	}
	intent, at := Intent{Object: d.IntN(d.Objects)}, d.IntN(total)
	for _, choice := range choices {
		if at -= choice.weight; at < 0 {
			choice.draw(d, &intent)
			break
		}
	}
	if d.Nodes {
		intent.Pause = time.Duration(d.Int64N(int64(longestPause/time.Millisecond))) * time.Millisecond
	}
	return intent
}

func (d *drawer) oneIn(n int) bool { return d.IntN(n) == 0 }

func one[T any](d *drawer, of ...T) T { return of[d.IntN(len(of))] }

func (d *drawer) read(of ...Read) Read { return one(d, of...) }

// value is one that no other operation writes.
func (d *drawer) value() *string {
	d.values++
	return new(fmt.Sprintf("%d.%d", d.client, d.values))
}

// content is that of a new object.
func (d *drawer) content() model.Change {
	return model.Change{Value: d.value(), Label: new(one(d, append([]string{""}, d.Labels...)...)), Finalizers: d.finalizers(), Owners: d.owners()}
}

// change is what a write changes: one of the fields, or several.
func (d *drawer) change() model.Change {
	change := model.Change{}
	switch d.IntN(6) {
	case 0, 1:
		change.Finalizers = d.finalizers()
	case 2:
		change.Label = new(one(d, append([]string{""}, d.Labels...)...))
	case 3:
		change.Owners = d.owners()
	case 4:
		change = d.content()
	}
	if change.Finalizers == nil || d.oneIn(2) {
		change.Value = d.value()
	}
	return change
}

// finalizers are none for most objects, so that they come to their end.
func (d *drawer) finalizers() *model.Names {
	var names []string
	for _, finalizer := range d.Finalizers {
		if d.oneIn(3) {
			names = append(names, finalizer)
		}
	}
	return new(model.NamesOf(names...))
}

func (d *drawer) owners() *model.Names {
	if d.Owner == "" || !d.oneIn(4) {
		return new(model.Names(""))
	}
	return new(model.NamesOf(model.Owner{Name: d.Owner}.String()))
}

// ownersIn are up to three other objects, which may not exist, may be cluster-scoped, or in another namespace. The first objects own more than others,
// so that some have several dependents.
func (d *drawer) ownersIn(object int) *model.Names {
	var owners []string
	for range d.IntN(4) {
		if d.oneIn(8) {
			owners = append(owners, model.Owner{Name: one(d, ClusterOwner, ClusterOwner, ElsewhereOwner)}.String())
			continue
		}
		if owner := min(d.IntN(d.Objects), d.IntN(d.Objects)); owner != object {
			owners = append(owners, OwnerAt(owner, d.oneIn(2)))
		}
	}
	return new(model.NamesOf(owners...))
}

func (d *drawer) selector() string { return one(d, append([]string{""}, d.Labels...)...) }

func (d *drawer) grace() *int64 {
	if d.oneIn(6) {
		return new(int64(d.IntN(3)))
	}
	return nil
}

// policy is Background where no garbage collector removes the finalizers of the other policies.
func (d *drawer) policy() string {
	if !d.GarbageCollector {
		return one(d, "", model.PolicyBackground)
	}
	return one(d, "", "", model.PolicyBackground, model.PolicyForeground, model.PolicyOrphan)
}

// Check fails for programs that no generator draws for so many objects.
func Check(programs []Program, objects int) error {
	for _, program := range programs {
		for _, intent := range program {
			collection := intent.Verb == model.Select || intent.Verb == model.Delete && intent.Object < 0
			if !slices.Contains(verbs, intent.Verb) || (intent.Object < 0) != collection || intent.Object >= objects || intent.Limit < 0 ||
				(intent.Namespace || intent.ClusterOwner) && !slices.Contains(onOthers, intent.Verb) {
				return fmt.Errorf("%q of object %d is no operation", intent.Verb, intent.Object)
			}
		}
	}
	return nil
}

// onOthers are the operations on namespaces and on the cluster-scoped owner.
var onOthers = []model.Verb{model.Delete, model.Get}

var verbs = []model.Verb{model.Get, model.Create, model.Update, model.Patch, model.Apply, model.UpdateStatus, model.Delete, model.Select}
