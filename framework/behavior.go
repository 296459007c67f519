package framework

import (
	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
)

const (
	// Core behaviors are promised by every Kubernetes cluster.
	Core = v1alpha1.Core
	// Extended behaviors are promised where a feature is on, and skipped elsewhere.
	Extended = v1alpha1.Extended
	// Observed behaviors are what upstream is seen to do without a written promise.
	Observed = v1alpha1.Observed
)

// Requirement is what Behavior takes beside the id and the level: what the cluster or the credentials must offer, the
// first version that has it, or that it is slow.
type Requirement struct {
	decorator any
	// need is what is needed, if it is that.
	need v1alpha1.Feature
}

// What a behavior may need beyond an API server.
var (
	// GC is the garbage collector.
	GC = requiring(v1alpha1.GC)
	// KCM stands for the other built-in controllers of kube-controller-manager.
	KCM = requiring(v1alpha1.KCM)
	// CRD is the permission to create custom resource definitions.
	CRD = requiring(v1alpha1.CRD)
	// Admin is the permission to write cluster-scoped objects that no other need names.
	Admin = requiring(v1alpha1.Admin)
	// Namespace is the permission to create namespaces, on a cluster on which namespaces go once they are deleted.
	Namespace = requiring(v1alpha1.Namespace)
	// Volume is the permission to create PersistentVolumes.
	Volume = requiring(v1alpha1.Volume)
	// Class is the permission to create PriorityClasses and VolumeAttributesClasses.
	Class = requiring(v1alpha1.Class)
	// SimulatedNode is a cluster on which Nodes without a machine can be created, and stay. Pods that are bound to the name of a Node
	// that does not exist do not need it.
	SimulatedNode = requiring(v1alpha1.SimulatedNode)
	// Hook is an API server that can reach a webhook of the runner's.
	Hook = requiring(v1alpha1.Hook)
	// Node is a real kubelet with a real container runtime.
	Node = requiring(v1alpha1.Node)
	// PodNetwork is a network in which the pods of a run reach each other.
	PodNetwork = requiring(v1alpha1.PodNetwork)
	// Kubectl is a kubectl that the runner can run. The behavior is kubectl's: Since names a version of kubectl.
	Kubectl = requiring(v1alpha1.Kubectl)
	// Controller is a controller of the resource that is tested, at work in the cluster, which the run was told of (--controller).
	Controller = requiring(v1alpha1.Controller)
)

func requiring(need v1alpha1.Feature) Requirement { return Requirement{specs.Features(need), need} }

// Slow marks a behavior that waits a minute or so for the cluster's own clock. A run takes it only when asked to.
var Slow = Requirement{decorator: specs.Slow()}

// Disruptive marks a behavior that changes more of a cluster than what it makes, for a while: it stops a component, or
// breaks an API that others may use. Such specs are Serial, too. They run on clusters that were made for the run, and on
// others only when asked to.
var Disruptive = Requirement{decorator: specs.Disruptive()}

// Disturbs narrows what a Serial behavior may not run beside: those that need all of these. Given several times, those of
// each. The runner then has others run meanwhile, which Ginkgo alone does not.
func Disturbs(needs ...Requirement) Requirement {
	disturbed := make([]v1alpha1.Feature, len(needs))
	for i, requirement := range needs {
		disturbed[i] = requirement.need
	}
	return Requirement{decorator: specs.Disturbs(disturbed...)}
}

// SharedKind marks a behavior that is tested on a custom kind which the run defines at its beginning (Cluster.CustomKind
// and SpareKind). The garbage collector learns of it after up to 30 s, so such behaviors come last.
var SharedKind = Requirement{decorator: specs.SharedKind()}

// AnyResource marks a behavior that every kind promises, and that is tested on ConfigMaps only because there must be one. A run
// may test it on other kinds (--resource): what the spec makes of ConfigMaps is then of that kind.
var AnyResource = Requirement{decorator: specs.AnyResource()}

// CreatesNothing marks a behavior that shows in reads and dry-runs alone (DryRunCreate, DryRunTwice). A run that is to
// create nothing (--no-create) tests such behaviors only.
var CreatesNothing = Requirement{decorator: specs.CreatesNothing()}

// Source says where the promise is made: a page of the documentation ("concepts/architecture/garbage-collection"), the
// API reference, the API conventions ("api-conventions"), a KEP ("KEP-3329"), an upstream conformance test by its testname
// ("conformance: Garbage Collector, dependency cycle"), or for what is only observed an issue ("kubernetes#77081") or the
// source that does it ("pkg/registry/core/pod/storage/eviction.go").
func Source(text string) Requirement { return Requirement{decorator: specs.Source(text)} }

// Promise quotes the sentence of the Source that makes the promise: word for word, and at most 25 words ("..." marks what is
// left out). Every core behavior needs one; `make docs` prints it beside the behavior.
func Promise(quote string) Requirement { return Requirement{decorator: specs.Promise(quote)} }

// Since names the first minor version of Kubernetes that has the behavior ("1.30"). It becomes Ginkgo's
// SemVerConstraint, so Ginkgo's own --sem-ver-filter works on it too.
func Since(minor string) Requirement { return Requirement{decorator: specs.Since(minor)} }

// Behavior decorates a spec with its row of the catalogue: the id, the level and what it needs. It is the one place
// where these are said; the spec's own text and its container's are the statement. Everything becomes Ginkgo labels, so
// that --label-filter selects by id (`cascade.foreground.circle`), by level (`core`) and by need (`needs: containsAny gc`).
func Behavior(id string, level v1alpha1.Level, requirements ...Requirement) []any {
	decorators := []any{specs.Identify(id, level)}
	for _, requirement := range requirements {
		decorators = append(decorators, requirement.decorator)
	}
	return decorators
}
