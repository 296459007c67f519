// Package provider defines what a run needs from a cluster of any origin: an existing one (package existing), a kind cluster (package
// kind), or an embedded Kubernetes (package embedded).
package provider

import (
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Cluster is a cluster to test.
type Cluster interface {
	// RESTConfig is the client configuration of the run.
	RESTConfig() *rest.Config
	// Features are what the provider knows about the cluster without probing it.
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
	// Destroy deletes the cluster, unless it is kept. It has no effect when there is none.
	Destroy() error
}

// Features are what a provider knows about its cluster. With the zero value everything is probed.
type Features struct {
	// Supported are the features that the cluster was created with. They are not probed, so that behaviors fail instead of being skipped
	// when a feature does not work.
	Supported []v1alpha1.Feature
	// Unsupported maps features that the cluster was created without to the reasons.
	Unsupported map[v1alpha1.Feature]string
	// WebhookHost is the address of this machine at which the API server can reach a webhook; empty to detect it.
	WebhookHost string
	// NoWebhooks is why there is no such address; empty otherwise.
	NoWebhooks string
	// Components is the path of the socket for stopping and starting components; see package component. It is empty when that is not
	// possible.
	Components string
	// Ephemeral is set when Destroy deletes the cluster with its content, so that no cleanup is needed.
	Ephemeral bool
}
