// Package provider is where clusters come from, as e2e-framework's E2EClusterProvider: one that exists already, or one
// that is made here and now from the binaries of the kubernetes/ module.
package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"
)

// Existing is a cluster that somebody else made. It is only ever used: Destroy leaves it as it is.
type Existing struct {
	kubeconfig string
	context    string
	config     *rest.Config
}

var _ support.E2EClusterProvider = &Existing{}

// NewExisting is the cluster that a context of a kubeconfig file names; an empty context is the file's current one.
// Nothing is read before Create.
func NewExisting(kubeconfig, context string) *Existing {
	return &Existing{kubeconfig: kubeconfig, context: context}
}

// Create reads the kubeconfig. It fails when the file is missing, malformed or empty, and when it does not have the
// context; it does not talk to the cluster. It returns the path of the kubeconfig.
func (e *Existing) Create(_ context.Context, args ...string) (string, error) {
	if len(args) > 0 {
		return "", errors.New("an existing cluster takes no arguments")
	}
	raw, err := load(e.kubeconfig)
	if err != nil {
		return "", err
	}
	if len(raw.Contexts) == 0 {
		return "", fmt.Errorf("kubeconfig %s has no contexts: it names no cluster", e.kubeconfig)
	}
	if e.context == "" {
		e.context = raw.CurrentContext
	}
	chosen := raw.Contexts[e.context]
	if chosen == nil {
		return "", fmt.Errorf("kubeconfig %s has no context %q: it has %s; name one of them", e.kubeconfig, e.context,
			strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	if raw.Clusters[chosen.Cluster] == nil {
		return "", fmt.Errorf("context %q of kubeconfig %s names the cluster %q, which the file does not have", e.context, e.kubeconfig, chosen.Cluster)
	}
	e.config, err = clientcmd.NewNonInteractiveClientConfig(*raw, e.context, nil, nil).ClientConfig()
	if err != nil {
		return "", fmt.Errorf("read context %q of kubeconfig %s: %w", e.context, e.kubeconfig, err)
	}
	return e.kubeconfig, nil
}

// Contexts are the names of the contexts of a kubeconfig, sorted. It fails when the file cannot be read or has none.
func Contexts(kubeconfig string) ([]string, error) {
	raw, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	if len(raw.Contexts) == 0 {
		return nil, fmt.Errorf("kubeconfig %s has no contexts: it names no cluster", kubeconfig)
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), nil
}

// load reads a kubeconfig, or merges several as KUBECONFIG lists them. Each must be there: kubectl passes over missing
// ones, but a run must not end up on another cluster because of a typing mistake.
func load(files string) (*clientcmdapi.Config, error) {
	list := filepath.SplitList(files)
	for _, file := range list {
		if _, err := clientcmd.LoadFromFile(file); err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", file, err)
		}
	}
	merged, err := (&clientcmd.ClientConfigLoadingRules{Precedence: list}).Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", files, err)
	}
	return merged, nil
}

// CreateWithConfig reads another kubeconfig than the one the provider was made for.
func (e *Existing) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	e.kubeconfig = configFile
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

// GetKubeconfig is the path of the kubeconfig.
func (e *Existing) GetKubeconfig() string { return e.kubeconfig }

// GenerateKubeconfig is the path of the kubeconfig too.
func (e *Existing) GenerateKubeconfig(...string) (string, error) { return e.kubeconfig, nil }

// GetKubectlContext is the context in it.
func (e *Existing) GetKubectlContext() string { return e.context }

// KubernetesRestConfig is how to reach the cluster; nil before Create.
func (e *Existing) KubernetesRestConfig() *rest.Config { return e.config }

// ExportLogs does nothing: the logs of an existing cluster are not ours to collect.
func (e *Existing) ExportLogs(context.Context, string) error { return nil }

// WaitForControlPlane asks the API server once whether it is there. An existing cluster is not waited for.
func (e *Existing) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	if e.config == nil {
		return errors.New("no cluster yet: call Create first")
	}
	return answers(ctx, e.config, "/version")
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
