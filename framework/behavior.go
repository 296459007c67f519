package framework

import (
	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

const (
	// Core behaviors are promised for every Kubernetes cluster, or required by this project.
	Core = v1alpha1.Core
	// Extended behaviors are promised where a feature is enabled, and skipped elsewhere.
	Extended = v1alpha1.Extended
	// Observed behaviors are those of upstream Kubernetes without a written promise.
	Observed = v1alpha1.Observed
)

// BehaviorOption is an argument of Behavior besides the id and the level: a feature of the cluster or a permission, the first version, or a
// property such as Slow.
type BehaviorOption struct {
	decorator any
	// feature is the required feature, if any.
	feature v1alpha1.Feature
}

// The features that a behavior may require besides an API server.
var (
	// GC is the garbage collector.
	GC = featureOption(v1alpha1.GC)
	// KCM stands for the other built-in controllers of kube-controller-manager.
	KCM = featureOption(v1alpha1.KCM)
	// CRD is the permission to create CustomResourceDefinitions.
	CRD = featureOption(v1alpha1.CRD)
	// Admin is the permission to write cluster-scoped objects that no other feature covers.
	Admin = featureOption(v1alpha1.Admin)
	// Namespace is the permission to create namespaces, on a cluster that can delete them.
	Namespace = featureOption(v1alpha1.Namespace)
	// Volume is the permission to create PersistentVolumes.
	Volume = featureOption(v1alpha1.Volume)
	// Class is the permission to create PriorityClasses and VolumeAttributesClasses.
	Class = featureOption(v1alpha1.Class)
	// SimulatedNode is a cluster in which Nodes without a machine can be created and remain. Pods that are bound to the name of a
	// nonexistent Node do not require it.
	SimulatedNode = featureOption(v1alpha1.SimulatedNode)
	// Hook is an API server that can reach a webhook of the runner.
	Hook = featureOption(v1alpha1.Hook)
	// Node is a real kubelet with a real container runtime.
	Node = featureOption(v1alpha1.Node)
	// TwoNodes is a second node with a real kubelet.
	TwoNodes = featureOption(v1alpha1.TwoNodes)
	// PodNetwork is a network in which the run's pods reach each other.
	PodNetwork = featureOption(v1alpha1.PodNetwork)
	// Kubectl is a kubectl that the runner can execute. Since then names a version of kubectl.
	Kubectl = featureOption(v1alpha1.Kubectl)
	// Controller is a running controller of the resource under test, as set with --controller.
	Controller = featureOption(v1alpha1.Controller)
	// OwnCluster is a cluster that was created for the run and is deleted after it, so that the spec may delete what others would miss.
	OwnCluster = featureOption(v1alpha1.OwnCluster)
)

func featureOption(feature v1alpha1.Feature) BehaviorOption {
	return BehaviorOption{specs.Features(feature), feature}
}

// Slow marks a behavior that waits about a minute for the cluster's clock, or creates hundreds of objects. A run includes it only on request.
var Slow = BehaviorOption{decorator: specs.Slow()}

// Disruptive marks a behavior that temporarily changes more of a cluster than its own objects: it stops a component, or breaks an API that
// others may use. Such specs are also Serial. They run on clusters created for the run, and on others only on request.
var Disruptive = BehaviorOption{decorator: specs.Disruptive()}

// Disturbs restricts which specs a Serial spec must not run in parallel with: those that require all of these features. Several calls add
// further sets. The runner then runs other specs meanwhile, which Ginkgo alone does not. Where disruptive specs have a node for themselves
// (session.Config.SpareNode), those that disturb Node disturb only each other.
func Disturbs(features ...BehaviorOption) BehaviorOption {
	disturbed := make([]v1alpha1.Feature, len(features))
	for i, option := range features {
		disturbed[i] = option.feature
	}
	return BehaviorOption{decorator: specs.Disturbs(disturbed...)}
}

// These options mark a Serial behavior that disturbs others only because it stops the kubelet or the container runtime of a node, or
// kube-controller-manager (components.Stop). Those that stop the same may run in parallel: each allows for it to be stopped longer, and once more.
// While it needs a component of a node running, it calls components.WhileRunning.
var (
	StopsKubelet           = BehaviorOption{decorator: specs.Stops("kubelet")}
	StopsRuntime           = BehaviorOption{decorator: specs.Stops("container runtime")}
	StopsControllerManager = BehaviorOption{decorator: specs.Stops("kube-controller-manager")}
)

// BreaksDiscovery marks a Serial behavior that disturbs others only because an aggregated API does not respond. Such behaviors may run in parallel:
// each allows for other APIs that do not respond, for longer than its own.
var BreaksDiscovery = BehaviorOption{decorator: specs.Stops("discovery")}

// SharedKind marks a behavior that uses a custom kind which the run defines when it starts (Cluster.CustomKind and SpareKind). The garbage
// collector discovers the kind after up to 30 s, so such specs run last.
var SharedKind = BehaviorOption{decorator: specs.SharedKind()}

// AnyResource marks a behavior that is promised for every kind. Specs use ConfigMaps; with --resource, objects of that resource replace
// them.
var AnyResource = BehaviorOption{decorator: specs.AnyResource()}

// CreatesNothing marks a behavior that only sends reads and dry-runs (DryRunCreate, DryRunTwice). A run with --no-create includes only such
// behaviors.
var CreatesNothing = BehaviorOption{decorator: specs.CreatesNothing()}

// Source is the location of the promise: a page of the documentation ("concepts/architecture/garbage-collection"), the API reference, the
// API conventions ("api-conventions"), a KEP ("KEP-3329"), or an upstream conformance test by its testname ("conformance: Garbage
// Collector, dependency cycle"). For an observed behavior it is an issue ("kubernetes#77081") or a source file
// ("pkg/registry/core/pod/storage/eviction.go").
func Source(text string) BehaviorOption { return BehaviorOption{decorator: specs.Source(text)} }

// Promise quotes the sentence of the Source that makes the promise: verbatim, with at most 25 words ("..." marks omissions). Every core
// behavior has one, except those that this project requires without; `make docs` prints it, and `make quotes` compares it with the page.
func Promise(quote string) BehaviorOption { return BehaviorOption{decorator: specs.Promise(quote)} }

// Since is the first minor version of Kubernetes with the behavior ("1.30"). It becomes Ginkgo's SemVerConstraint, so Ginkgo's
// --sem-ver-filter works too.
func Since(minor string) BehaviorOption { return BehaviorOption{decorator: specs.Since(minor)} }

// Behavior decorates a spec with its id, level and options. The text of the spec is the statement. Everything becomes a Ginkgo label,
// so --label-filter selects by id (`cascade.foreground.circle`), by level (`core`) and by feature (`features: containsAny gc`).
func Behavior(id string, level v1alpha1.Level, options ...BehaviorOption) []any {
	decorators := []any{specs.Identify(id, level)}
	for _, option := range options {
		decorators = append(decorators, option.decorator)
	}
	return decorators
}
