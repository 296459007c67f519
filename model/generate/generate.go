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

// Intent is an operation before it is known what it will meet: what it requires of the object is what its client has seen of it. One that
// names a fault is that injected fault instead, and no operation.
type Intent struct {
	Verb model.Verb `json:"verb,omitempty"`
	// Fault is the name of the injected fault; empty for an operation. Object then selects what the fault is about, where there is a choice.
	Fault string `json:"fault,omitempty"`
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
	// Step is what a scenario does where the verb alone does not define it. Part is the dependent of the object that the operation is about, counted
	// from 1 and from the start again after the last; 0 for the object.
	Step string `json:"step,omitempty"`
	Part int    `json:"part,omitempty"`
	// Replicas is how many pods a workload requires; nil for as many as before.
	Replicas *int64 `json:"replicas,omitempty"`
	// Down is how long the operator is stopped by a restart.
	Down time.Duration `json:"down,omitempty"`
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
	// Owner is the name of an object that may own the other objects.
	Owner string
	// GarbageCollector reports that a garbage collector removes the finalizers of propagation policies.
	GarbageCollector bool
	// Status reports that objects have a status subresource.
	Status bool
	// Draw draws the operation that follows those of a client.
	Draw func(d *Drawer, before Program) Intent
	// Faults take the place of some operations.
	Faults []Fault
}

// Fault is an injected fault that can be drawn.
type Fault struct {
	Name string
	// PerRound is how often the programs of all clients have it on average.
	PerRound float64
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

// Programs draws a program for each client.
func Programs(seed uint64, options Options) []Program {
	programs := make([]Program, options.Clients)
	for client := range programs {
		d := &Drawer{rand.New(rand.NewPCG(seed, uint64(client))), options, client, 0} //nolint:gosec // it must be reproducible
		for range options.Operations {
			programs[client] = append(programs[client], d.next(programs[client]))
		}
	}
	return programs
}

// Drawer draws the operations of one client.
type Drawer struct {
	*rand.Rand
	Options
	client, values int
}

// next draws an injected fault, or the operation that follows those of the client. Without faults it draws nothing else, so that the same seed
// draws the same operations.
func (d *Drawer) next(before Program) Intent {
	if len(d.Faults) > 0 {
		at := d.Float64() * float64(d.Clients*d.Operations)
		for _, fault := range d.Faults {
			if at -= fault.PerRound; at < 0 {
				return Intent{Fault: fault.Name, Object: d.IntN(d.Objects)}
			}
		}
	}
	return d.Draw(d, before)
}

// Choice is what can be drawn, with its relative frequency.
type Choice struct {
	Weight int
	Draw   func(*Drawer, *Intent)
}

// Choose draws one of the choices, for one of the objects.
func (d *Drawer) Choose(choices []Choice) Intent {
	total := 0
	for _, choice := range choices {
		total += choice.Weight
	}
	intent, at := Intent{Object: d.IntN(d.Objects)}, d.IntN(total)
	for _, choice := range choices {
		if at -= choice.Weight; at < 0 {
			choice.Draw(d, &intent)
			break
		}
	}
	return intent
}

// OneIn draws true once in so many times.
func (d *Drawer) OneIn(n int) bool { return d.IntN(n) == 0 }

// One draws one of some values.
func One[T any](d *Drawer, of ...T) T { return of[d.IntN(len(of))] }

// Value is one that no other operation writes.
func (d *Drawer) Value() *string {
	d.values++
	return new(fmt.Sprintf("%d.%d", d.client, d.values))
}

// Policy is Background where no garbage collector removes the finalizers of the other policies.
func (d *Drawer) Policy() string {
	if !d.GarbageCollector {
		return One(d, "", model.PolicyBackground)
	}
	return One(d, "", "", model.PolicyBackground, model.PolicyForeground, model.PolicyOrphan)
}

// Check fails for programs that no generator draws for so many objects. It does not know the names of faults.
func Check(programs []Program, objects int) error {
	for _, program := range programs {
		for _, intent := range program {
			if intent.Fault != "" && (intent.Verb != "" || intent.Object < 0 || intent.Object >= objects) {
				return fmt.Errorf("an injected fault is no operation of object %d", intent.Object)
			}
			if intent.Fault != "" {
				continue
			}
			collection := intent.Verb == model.Select || intent.Verb == model.Delete && intent.Object < 0
			if !slices.Contains(verbs, intent.Verb) || (intent.Object < 0) != collection || intent.Object >= objects || intent.Limit < 0 || intent.Part < 0 ||
				(intent.Namespace || intent.ClusterOwner) && !slices.Contains(onOthers, intent.Verb) {
				return fmt.Errorf("%q of object %d is no operation", intent.Verb, intent.Object)
			}
		}
	}
	return nil
}

// onOthers are the operations on namespaces and on the cluster-scoped owner.
var onOthers = []model.Verb{model.Delete, model.Get}

var verbs = []model.Verb{model.Get, model.Create, model.Update, model.Patch, model.Apply, model.UpdateStatus, model.Delete, model.Select, model.Restart}
