// Package existing provides existing clusters. It never configures or deletes them.
package existing

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// Cluster is an existing cluster.
type Cluster struct {
	config     *rest.Config
	components string
}

var _ provider.Cluster = Cluster{}

// New returns the cluster of a kubeconfig's current context. It fails when the context cannot be used, for example because a file is
// missing or a certificate cannot be parsed; it does not connect to the cluster.
func New(kubeconfig clientcmd.ClientConfig) (Cluster, error) {
	config, err := kubeconfig.ClientConfig()
	if err == nil {
		_, err = rest.HTTPClientFor(config)
	}
	if err == nil {
		_, _, err = rest.DefaultServerUrlFor(config)
	}
	if err != nil {
		return Cluster{}, err
	}
	return Cluster{config, componentsOf(kubeconfig, config.Host)}, nil
}

// componentsOf returns the socket for components that a kubeconfig records for a server; empty when it records none.
func componentsOf(kubeconfig clientcmd.ClientConfig, server string) string {
	raw, err := kubeconfig.RawConfig()
	if err != nil {
		return ""
	}
	for _, cluster := range raw.Clusters {
		if socket := component.ReadSocket(cluster, server); socket != "" {
			return socket
		}
	}
	return ""
}

// RESTConfig is the client configuration of the cluster.
func (c Cluster) RESTConfig() *rest.Config { return c.config }

// Features are only the components that can be stopped, where the kubeconfig of an embedded cluster names them: a run probes the rest.
func (c Cluster) Features() provider.Features { return provider.Features{Components: c.components} }
