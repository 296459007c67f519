package clusters

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// load reads a kubeconfig, or merges several as in KUBECONFIG, and makes its paths absolute. Each must exist: kubectl ignores missing ones,
// but a run must not use another cluster because of a typo.
func load(files string) (*clientcmdapi.Config, error) {
	list := filepath.SplitList(files)
	for _, file := range list {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", file, err)
		}
	}
	loaded, err := (&clientcmd.ClientConfigLoadingRules{Precedence: list}).Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %s", files, oneLine(err))
	}
	if len(loaded.Contexts) == 0 {
		return nil, fmt.Errorf("kubeconfig %s has no contexts", files)
	}
	return loaded, nil
}

// contextsOf returns the names of the selected contexts of a kubeconfig.
func (f *Flags) contextsOf(kubeconfig *clientcmdapi.Config) []string {
	switch {
	case f.AllContexts:
		return slices.Sorted(maps.Keys(kubeconfig.Contexts))
	case len(f.Contexts) > 0:
		return f.Contexts
	}
	return []string{kubeconfig.CurrentContext}
}

// checkContext returns errors about a context that are clearer than client-go's.
func checkContext(file string, kubeconfig *clientcmdapi.Config, name string) error {
	chosen := kubeconfig.Contexts[name]
	if chosen == nil {
		return fmt.Errorf("kubeconfig %s has no context %q; it has %s", file, name,
			strings.Join(slices.Sorted(maps.Keys(kubeconfig.Contexts)), ", "))
	}
	if kubeconfig.Clusters[chosen.Cluster] == nil {
		return fmt.Errorf("context %q of kubeconfig %s refers to cluster %q, which does not exist", name, file, chosen.Cluster)
	}
	return nil
}
