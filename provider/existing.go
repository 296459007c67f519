// Package provider is where clusters come from, as e2e-framework's E2EClusterProvider: one that exists already, a kind
// cluster, or one that is made here and now from the binaries of the kubernetes/ module.
package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"
)

// Existing is a cluster that somebody else made. It is only ever used: Destroy leaves it as it is, and what would
// configure a cluster that is to be made does nothing.
type Existing struct {
	clientConfig clientcmd.ClientConfig
	kubeconfig   clientcmdapi.Config
	restConfig   *rest.Config
}

var _ support.E2EClusterProvider = &Existing{}

// NewExisting is the cluster of the current context of a kubeconfig that was loaded.
func NewExisting(clientConfig clientcmd.ClientConfig) *Existing {
	return &Existing{clientConfig: clientConfig}
}

// Create checks the kubeconfig. It fails when the context cannot be used, such as when a file that it names is missing;
// it does not talk to the cluster. It returns the path of the file that the context is from.
func (e *Existing) Create(context.Context, ...string) (string, error) {
	var err error
	if e.kubeconfig, err = e.clientConfig.RawConfig(); err != nil {
		return "", err
	}
	if e.restConfig, err = e.clientConfig.ClientConfig(); err != nil {
		return "", err
	}
	return e.GetKubeconfig(), nil
}

// CreateWithConfig reads another kubeconfig than the one the provider was made for.
func (e *Existing) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: configFile}
	e.clientConfig = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	return e.Create(ctx)
}

// WithName does nothing: an existing cluster has its name.
func (e *Existing) WithName(string) support.E2EClusterProvider { return e }

// WithVersion does nothing: an existing cluster has its version.
func (e *Existing) WithVersion(string) support.E2EClusterProvider { return e }

// WithPath does nothing: an existing cluster needs no binary.
func (e *Existing) WithPath(string) support.E2EClusterProvider { return e }

// WithOpts applies the options.
func (e *Existing) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, apply := range opts {
		apply(e)
	}
	return e
}

// SetDefaults does nothing: there are none.
func (e *Existing) SetDefaults() support.E2EClusterProvider { return e }

// GetKubeconfig is the path of the file that the context is from; empty before Create, and for a context of no file.
func (e *Existing) GetKubeconfig() string {
	if current := e.kubeconfig.Contexts[e.kubeconfig.CurrentContext]; current != nil {
		return current.LocationOfOrigin
	}
	return ""
}

// GenerateKubeconfig is GetKubeconfig.
func (e *Existing) GenerateKubeconfig(...string) (string, error) { return e.GetKubeconfig(), nil }

// GetKubectlContext is the name of the context; empty before Create.
func (e *Existing) GetKubectlContext() string { return e.kubeconfig.CurrentContext }

// KubernetesRestConfig is how to reach the cluster; nil before Create.
func (e *Existing) KubernetesRestConfig() *rest.Config { return e.restConfig }

// ExportLogs does nothing: the logs of an existing cluster are not ours to collect.
func (e *Existing) ExportLogs(context.Context, string) error { return nil }

// WaitForControlPlane asks the API server once whether it is there. An existing cluster is not waited for.
func (e *Existing) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	if e.restConfig == nil {
		return errors.New("no cluster yet: call Create first")
	}
	return answers(ctx, e.restConfig, "/version")
}

// Destroy leaves the cluster as it is.
func (e *Existing) Destroy(context.Context) error { return nil }

// answers asks a server for a path and is nil when it says 200.
func answers(ctx context.Context, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	defer client.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s for %s: %s", config.Host, path, response.Status)
	}
	return nil
}
