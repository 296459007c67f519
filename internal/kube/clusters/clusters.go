// Package clusters finds the clusters of a run from the flags that kubectl users know, and connects to each. It loads kubeconfigs once, and
// passes on one context of them.
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

// ErrNoCluster is the error when no cluster is specified. The current context of ~/.kube/config does not count, because a run deletes
// objects and must be given its target.
var ErrNoCluster = errors.New(`no cluster specified; use one of
  --kubeconfig FILE    the cluster of a kubeconfig file (or set KUBECONFIG)
  --context NAME       a context of your kubeconfig
  --in-cluster         the cluster of this pod, with its ServiceAccount
  --provider embedded  an embedded Kubernetes, created for this run and deleted after it
  --provider kind      a kind cluster, created for this run and deleted after it`)

// Cluster is a cluster to test.
type Cluster struct {
	// Name is its name in reports: that of its context, or of its provider.
	Name string
	// Provider is the origin of the cluster.
	Provider provider.Cluster
	// Kubeconfig is a kubeconfig with one context, with the command line merged in and without relative paths. It may contain credentials.
	// Credentials in files stay there, where they can be rotated.
	Kubeconfig []byte
	// Flags are those that name this cluster alone, quoted for a shell, without values that are secret. They are empty for a cluster
	// that was created for the run, and for one that a program named.
	Flags string
}

// Created returns the cluster of a provider.
func Created(name string, from provider.Created) (Cluster, error) {
	loaded, err := load(from.Kubeconfig())
	if err != nil {
		return Cluster{}, err
	}
	loaded.CurrentContext = cmp.Or(from.Context(), loaded.CurrentContext)
	kubeconfig, err := reduced(loaded)
	return Cluster{Name: name, Provider: from, Kubeconfig: kubeconfig}, err
}

// Clusters returns the clusters that the flags and KUBECONFIG select. It fails with ErrNoCluster, or with the error of the first kubeconfig
// that cannot be used.
func (f *Flags) Clusters() ([]Cluster, error) {
	if f.AllContexts && len(f.Contexts) > 0 {
		return nil, errors.New("--all-contexts and --context are mutually exclusive")
	}
	if f.InCluster {
		return f.inCluster()
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

// clustersOf returns the clusters of the selected contexts of a file.
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
		cluster.Flags = f.naming("--"+clientcmd.RecommendedConfigPathFlag, file, "--"+clientcmd.FlagContext, name)
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}

// server returns the cluster of --server without a kubeconfig. As in kubectl, other settings come from ~/.kube/config if it exists.
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
	cluster.Name, cluster.Flags = server, f.naming()
	return []Cluster{cluster}, nil
}

// existing returns the cluster of a context, with the command line merged in.
func (f *Flags) existing(loaded *clientcmdapi.Config, name string) (Cluster, error) {
	merged, err := clientcmd.NewNonInteractiveClientConfig(*loaded, name, &f.overrides, nil).MergedRawConfig()
	if err != nil {
		return Cluster{}, err
	}
	timeout := &clientcmd.ConfigOverrides{Timeout: f.overrides.Timeout} // which a kubeconfig cannot contain
	existing, err := existing.New(clientcmd.NewNonInteractiveClientConfig(merged, name, timeout, nil))
	if err != nil {
		return Cluster{}, err
	}
	kubeconfig, err := reduced(&merged)
	return Cluster{Name: name, Provider: existing, Kubeconfig: kubeconfig}, err
}

// reduced returns the part of a kubeconfig that its current context needs.
func reduced(kubeconfig *clientcmdapi.Config) ([]byte, error) {
	if err := clientcmdapi.MinifyConfig(kubeconfig); err != nil {
		return nil, err
	}
	return clientcmd.Write(*kubeconfig)
}

// distinct rejects two clusters with the same name, because reports identify clusters by name.
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

// oneLine returns an error on one line.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
}
