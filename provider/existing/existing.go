// Package existing is for clusters that somebody else made. They are only used, never configured or deleted.
package existing

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/provider"
)

// Cluster is a cluster that somebody else made.
type Cluster struct{ config *rest.Config }

var _ provider.Cluster = Cluster{}

// New is the cluster of the current context of a kubeconfig. It fails when the context cannot be used, such as when a file that
// it names is missing; it does not connect to the cluster.
func New(kubeconfig clientcmd.ClientConfig) (Cluster, error) {
	config, err := kubeconfig.ClientConfig()
	return Cluster{config}, err
}

// RESTConfig is how to reach the cluster.
func (c Cluster) RESTConfig() *rest.Config { return c.config }

// Features are none: all that a run needs to know of the cluster is probed.
func (c Cluster) Features() provider.Features { return provider.Features{} }
