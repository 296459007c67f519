// Package provider defines what a run asks of a cluster, wherever the cluster comes from: one that exists (package existing), a
// kind cluster (package kind), or an embedded Kubernetes (package embedded).
package provider

import (
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Cluster is a cluster to run on.
type Cluster interface {
	// RESTConfig is how the run reaches the cluster.
	RESTConfig() *rest.Config
	// Features are what the provider knows of the cluster without asking it.
	Features() Features
}

// Created is a cluster that a provider created for a run.
type Created interface {
	Cluster
	// Kubeconfig is the path of the administrator's kubeconfig, and Context its context for the cluster.
	Kubeconfig() string
	Context() string
	// ExportLogs writes the logs of the cluster's components into a directory, which is created if it does not exist.
	ExportLogs(dir string) error
	// Destroy deletes the cluster, unless it is to be kept. It does nothing when there is none.
	Destroy() error
}

// Features are what a provider knows of its cluster. The zero value knows nothing: then everything is probed.
type Features struct {
	// Supported are the needs that the cluster was made to meet. They are not probed, so that a cluster which does not
	// meet them fails behaviors instead of having them skipped.
	Supported []v1alpha1.Feature
	// Unsupported says of needs that the cluster was made without why not.
	Unsupported map[v1alpha1.Feature]string
	// WebhookHost is the address of this machine at which the API server can reach a webhook; empty where the run is to find out.
	WebhookHost string
	// NoWebhooks says why there is no such address; empty where there is one, or where that is not known.
	NoWebhooks string
	// Components is the path of the socket under which components of the cluster can be stopped and started; see package
	// component. It is empty where they cannot.
	Components string
	// Ephemeral says that Destroy deletes the cluster with all that is on it, so that nothing needs to be removed before.
	Ephemeral bool
}
