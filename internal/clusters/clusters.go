// Package clusters says which clusters a run is for, from the flags of kubectl users, and how to reach each. A kubeconfig
// is loaded here, once, and handed on as what one context of it comes to.
package clusters

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/existing"
)

// ErrNoCluster says that nothing names a cluster. The current context of ~/.kube/config does not count: a run deletes
// things, and does so only where it was told to.
var ErrNoCluster = errors.New(`no cluster specified; use one of
  --kubeconfig FILE    the cluster of a kubeconfig file (or set KUBECONFIG)
  --context NAME       a context of your kubeconfig
  --provider embedded  an embedded Kubernetes, created for this run and deleted after it
  --provider kind      a kind cluster, created for this run and deleted after it`)

// Cluster is a cluster to run on.
type Cluster struct {
	// Name is what reports call it: the name of its context, or of the provider that made it.
	Name string
	// Provider is where it comes from.
	Provider provider.Cluster
	// Kubeconfig is how to reach it: one context, with what the command line says merged in and without relative paths.
	// It may hold credentials. Those that are in files stay there, where they can be rotated.
	Kubeconfig []byte
}

// Created is the cluster that a provider has created.
func Created(name string, from provider.Created) (Cluster, error) {
	loaded, err := load(from.Kubeconfig())
	if err != nil {
		return Cluster{}, err
	}
	loaded.CurrentContext = cmp.Or(from.Context(), loaded.CurrentContext)
	kubeconfig, err := reduced(loaded)
	return Cluster{Name: name, Provider: from, Kubeconfig: kubeconfig}, err
}

// Clusters are the clusters that the flags and KUBECONFIG name. It fails with ErrNoCluster, or says what is wrong with
// the first kubeconfig that cannot be used.
func (f *Flags) Clusters() ([]Cluster, error) {
	if f.AllContexts && len(f.Contexts) > 0 {
		return nil, errors.New("--all-contexts and --context are mutually exclusive")
	}
	files := f.Kubeconfigs
	if environment := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); len(files) == 0 && environment != "" {
		files = []string{environment}
	}
	if len(files) == 0 && (len(f.Contexts) > 0 || f.AllContexts) {
		files = []string{clientcmd.RecommendedHomeFile}
	}
	if len(files) == 0 {
		return f.server()
	}
	var clusters []Cluster
	for _, file := range files {
		ofFile, err := f.clustersOf(file)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, ofFile...)
	}
	return distinct(clusters)
}

// clustersOf are the clusters of the contexts of a file that are meant.
func (f *Flags) clustersOf(file string) ([]Cluster, error) {
	loaded, err := load(file)
	if err != nil {
		return nil, err
	}
	var clusters []Cluster
	for _, name := range f.contextsOf(loaded) {
		if err := checkContext(file, loaded, name); err != nil {
			return nil, err
		}
		cluster, err := f.existing(loaded, name)
		if err != nil {
			return nil, fmt.Errorf("read context %q of kubeconfig %s: %s", name, file, oneLine(err))
		}
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}

// server is the cluster that --server names without any kubeconfig. As with kubectl, the other flags add to what
// ~/.kube/config says, if there is one.
func (f *Flags) server() ([]Cluster, error) {
	server := f.overrides.ClusterInfo.Server
	if server == "" {
		return nil, ErrNoCluster
	}
	loaded, err := (&clientcmd.ClientConfigLoadingRules{Precedence: []string{clientcmd.RecommendedHomeFile}}).Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %s", clientcmd.RecommendedHomeFile, oneLine(err))
	}
	if loaded.Contexts[loaded.CurrentContext] == nil {
		loaded.CurrentContext = server
		loaded.Contexts[server] = &clientcmdapi.Context{Cluster: server, AuthInfo: server}
	}
	cluster, err := f.existing(loaded, loaded.CurrentContext)
	if err != nil {
		return nil, fmt.Errorf("use --server %s: %s", server, oneLine(err))
	}
	cluster.Name = server
	return []Cluster{cluster}, nil
}

// existing is the cluster of a context, with what the command line says merged in.
func (f *Flags) existing(loaded *clientcmdapi.Config, name string) (Cluster, error) {
	merged, err := clientcmd.NewNonInteractiveClientConfig(*loaded, name, &f.overrides, nil).MergedRawConfig()
	if err != nil {
		return Cluster{}, err
	}
	timeout := &clientcmd.ConfigOverrides{Timeout: f.overrides.Timeout} // which a kubeconfig has no place for
	existing, err := existing.New(clientcmd.NewNonInteractiveClientConfig(merged, name, timeout, nil))
	if err != nil {
		return Cluster{}, err
	}
	kubeconfig, err := reduced(&merged)
	return Cluster{Name: name, Provider: existing, Kubeconfig: kubeconfig}, err
}

// reduced is what a kubeconfig's current context needs, as a kubeconfig.
func reduced(kubeconfig *clientcmdapi.Config) ([]byte, error) {
	if err := clientcmdapi.MinifyConfig(kubeconfig); err != nil {
		return nil, err
	}
	return clientcmd.Write(*kubeconfig)
}

// distinct refuses two clusters of one name: reports tell clusters apart by their names.
func distinct(clusters []Cluster) ([]Cluster, error) {
	seen := map[string]bool{}
	for _, cluster := range clusters {
		if seen[cluster.Name] {
			return nil, fmt.Errorf("two clusters have the name %q; rename one of the contexts with kubectl config rename-context", cluster.Name)
		}
		seen[cluster.Name] = true
	}
	return clusters, nil
}

// oneLine is what an error says, in one line.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
}
