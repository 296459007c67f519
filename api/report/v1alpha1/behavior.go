package v1alpha1

import (
	"regexp"
	"slices"
	"strings"
)

// Level says how binding a behavior is.
type Level string

const (
	// Core behaviors are promised by every Kubernetes cluster.
	Core Level = "core"
	// Extended behaviors are promised where a feature is on, and skipped elsewhere.
	Extended Level = "extended"
	// Observed behaviors are what upstream is seen to do without a written promise. A deviation is reported and does
	// not fail a run unless it is strict.
	Observed Level = "observed"
)

// Levels are all levels, the most binding first.
var Levels = []Level{Core, Extended, Observed}

// Feature is what a cluster, or the credentials for it, must offer beyond an API server before a behavior can be
// tested.
type Feature string

const (
	// GC is the garbage collector.
	GC Feature = "gc"
	// KCM stands for the other built-in controllers of kube-controller-manager.
	KCM Feature = "kcm"
	// CRD is the permission to create custom resource definitions.
	CRD Feature = "crd"
	// Admin is the permission to write cluster-scoped objects that no other need names.
	Admin Feature = "admin"
	// Namespace is the permission to create namespaces, on a cluster on which namespaces go once they are deleted.
	Namespace Feature = "namespace"
	// Volume is the permission to create PersistentVolumes.
	Volume Feature = "volume"
	// Class is the permission to create PriorityClasses and VolumeAttributesClasses.
	Class Feature = "class"
	// SimulatedNode is a cluster on which Nodes without a machine can be created, and stay.
	SimulatedNode Feature = "simulated-node"
	// Hook is an API server that can reach a webhook of the runner's.
	Hook Feature = "hook"
	// Node is a real kubelet with a real container runtime.
	Node Feature = "node"
	// PodNetwork is a network in which the pods of a run reach each other.
	PodNetwork Feature = "pod-network"
	// Kubectl is a kubectl that the runner can run.
	Kubectl Feature = "kubectl"
	// Controller is a controller of the resource that is tested, which the user names.
	Controller Feature = "controller"
)

// Features are all features, in the order in which they are named everywhere.
var Features = []Feature{GC, KCM, CRD, Admin, Namespace, Volume, Class, SimulatedNode, Hook, Node, PodNetwork, Kubectl, Controller}

// Behavior is one behavior of the catalogue: what a cluster must do when something is deleted.
type Behavior struct {
	// ID is the behavior's stable name, its suite first: cascade.background.owner-removed-first.
	ID string `json:"id"`
	// Statement is the promise, in one sentence.
	Statement string    `json:"statement"`
	Level     Level     `json:"level"`
	Features  []Feature `json:"needs"`
	// Since is the first minor version that has the behavior ("1.30"); empty means every supported version. It is one of
	// kubectl where the behavior is kubectl's, and else of the server.
	Since string `json:"since,omitempty"`
	// Slow behaviors wait a minute or so for the cluster's own clock.
	Slow bool `json:"slow,omitempty"`
	// Disruptive behaviors change more of a cluster than what they make, for a while.
	Disruptive bool `json:"disruptive,omitempty"`
	// Source says where the promise is made: a page of the documentation, the API reference, the API conventions, a KEP, an
	// upstream conformance test, or for what is only observed an issue or the source that does it. SourceURL has the forms.
	Source string `json:"source,omitempty"`
	// Promise quotes the sentence of the source that makes the promise, in at most 25 words. Every core behavior has one.
	Promise string `json:"promise,omitempty"`
	// File and Line say where the spec stands, the file relative to the repository's root.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// IsKubectl reports whether the behavior tests kubectl, and not a cluster. A run concludes of those on their own.
func (b Behavior) IsKubectl() bool { return slices.Contains(b.Features, Kubectl) }

// Suite is the suite the behavior belongs to: the first part of its id.
func (b Behavior) Suite() string {
	suite, _, _ := strings.Cut(b.ID, ".")
	return suite
}

// Topic is what the behavior is about within its suite: its id without the suite and the last part.
func (b Behavior) Topic() string {
	parts := strings.Split(b.ID, ".")
	if len(parts) < 3 {
		return ""
	}
	return strings.Join(parts[1:len(parts)-1], ".")
}

// sourceURLs are the forms of a Source that name a page, and where that page is.
var sourceURLs = []struct {
	form *regexp.Regexp
	url  string
}{
	{regexp.MustCompile(`^((?:concepts|reference|setup|tasks|tutorials)/[a-z0-9./_-]+)$`), "https://kubernetes.io/docs/$1/"},
	{regexp.MustCompile(`^KEP-([0-9]+)$`), "https://www.kubernetes.dev/resources/keps/$1/"},
	{regexp.MustCompile(`^kubernetes#([0-9]+)$`), "https://github.com/kubernetes/kubernetes/issues/$1"},
	{regexp.MustCompile(`^conformance: .+$`), "https://github.com/kubernetes/kubernetes/blob/master/test/conformance/testdata/conformance.yaml"},
	{
		regexp.MustCompile(`^api-conventions$`),
		"https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md",
	},
}

// SourceURL is the address of the page that Source names. It is empty where Source names none, as Go code does.
func (b Behavior) SourceURL() string {
	for _, known := range sourceURLs {
		if known.form.MatchString(b.Source) {
			return known.form.ReplaceAllString(b.Source, known.url)
		}
	}
	return ""
}
