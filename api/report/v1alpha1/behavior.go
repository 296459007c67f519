package v1alpha1

import (
	"regexp"
	"slices"
	"strings"
)

// Level is how binding a behavior is.
type Level string

const (
	// Core behaviors are promised for every Kubernetes cluster, or required by this project.
	Core Level = "core"
	// Extended behaviors are promised where a feature is enabled, and skipped elsewhere.
	Extended Level = "extended"
	// Observed behaviors are those of upstream Kubernetes without a written promise. A deviation is reported, and fails only a strict run.
	Observed Level = "observed"
)

// Levels are all levels, the most binding first.
var Levels = []Level{Core, Extended, Observed}

// Feature is a requirement of a behavior besides an API server: a feature of the cluster, or a permission.
type Feature string

const (
	// GC is the garbage collector.
	GC Feature = "gc"
	// KCM stands for the other built-in controllers of kube-controller-manager.
	KCM Feature = "kcm"
	// CRD is the permission to create CustomResourceDefinitions.
	CRD Feature = "crd"
	// Admin is the permission to write cluster-scoped objects that no other feature covers.
	Admin Feature = "admin"
	// Namespace is the permission to create namespaces, on a cluster that can delete them.
	Namespace Feature = "namespace"
	// Volume is the permission to create PersistentVolumes.
	Volume Feature = "volume"
	// Class is the permission to create PriorityClasses and VolumeAttributesClasses.
	Class Feature = "class"
	// SimulatedNode is a cluster in which Nodes without a machine can be created and remain.
	SimulatedNode Feature = "simulated-node"
	// Hook is an API server that can reach a webhook of the runner.
	Hook Feature = "hook"
	// Node is a real kubelet with a real container runtime.
	Node Feature = "node"
	// TwoNodes is a second node with a real kubelet.
	TwoNodes Feature = "two-nodes"
	// PodNetwork is a network in which the run's pods reach each other.
	PodNetwork Feature = "pod-network"
	// Kubectl is a kubectl that the runner can execute.
	Kubectl Feature = "kubectl"
	// Controller is a running controller of the resource under test, which the user names.
	Controller Feature = "controller"
	// OwnCluster is a cluster that was created for the run and is deleted after it, so that a behavior may delete what others would miss.
	OwnCluster Feature = "own-cluster"
)

// Features are all features, in the order of reports.
var Features = []Feature{GC, KCM, CRD, Admin, Namespace, Volume, Class, SimulatedNode, Hook, Node, TwoNodes, PodNetwork, Kubectl, Controller, OwnCluster}

// Behavior is one behavior of the catalog.
type Behavior struct {
	// ID is the stable id of the behavior, with its suite first: cascade.background.owner-removed-first.
	ID string `json:"id"`
	// Statement is the behavior in one sentence.
	Statement string    `json:"statement"`
	Level     Level     `json:"level"`
	Features  []Feature `json:"features"`
	// Since is the first minor version with the behavior ("1.30"); empty for every supported version. It is a version of kubectl for
	// behaviors of kubectl, and otherwise of the server.
	Since string `json:"since,omitempty"`
	// Slow behaviors wait about a minute for the cluster's clock.
	Slow bool `json:"slow,omitempty"`
	// Disruptive behaviors temporarily change more of a cluster than their own objects.
	Disruptive bool `json:"disruptive,omitempty"`
	// AnyResource behaviors are promised for every resource. A run with --resource includes only these.
	AnyResource bool `json:"anyResource,omitempty"`
	// Source is the location of the promise: a page of the documentation, the API reference, the API conventions, a KEP or an upstream
	// conformance test. For an observed behavior it is an issue or a source file. SourceURL supports these forms.
	Source string `json:"source,omitempty"`
	// Promise quotes the sentence of the source that makes the promise, in at most 25 words. Every core behavior has one,
	// except those that this project requires.
	Promise string `json:"promise,omitempty"`
	// File and Line are the location of the spec, relative to the repository's root.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// IsKubectl reports whether the behavior tests kubectl instead of the cluster. Kubectl has a separate verdict.
func (b Behavior) IsKubectl() bool { return slices.Contains(b.Features, Kubectl) }

// Suite is the suite of the behavior: the first part of its id.
func (b Behavior) Suite() string {
	suite, _, _ := strings.Cut(b.ID, ".")
	return suite
}

// Topic is the topic of the behavior in its suite: its id without the suite and the last part.
func (b Behavior) Topic() string {
	parts := strings.Split(b.ID, ".")
	if len(parts) < 3 {
		return ""
	}
	return strings.Join(parts[1:len(parts)-1], ".")
}

// sourceURLs maps the forms of a Source to the addresses of pages.
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

// SourceURL is the address of the page in Source. It is empty for other sources, such as Go code.
func (b Behavior) SourceURL() string {
	for _, known := range sourceURLs {
		if known.form.MatchString(b.Source) {
			return known.form.ReplaceAllString(b.Source, known.url)
		}
	}
	return ""
}
