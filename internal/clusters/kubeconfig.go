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

// load reads a kubeconfig, or merges several as KUBECONFIG lists them, and makes the paths in it absolute. Each must be
// there: kubectl passes over missing ones, but a run must not end up on another cluster because of a typing mistake.
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

// contextsOf are the names of the contexts of a kubeconfig that are meant.
func (f *Flags) contextsOf(kubeconfig *clientcmdapi.Config) []string {
	switch {
	case f.AllContexts:
		return slices.Sorted(maps.Keys(kubeconfig.Contexts))
	case len(f.Contexts) > 0:
		return f.Contexts
	}
	return []string{kubeconfig.CurrentContext}
}

// checkContext says what is wrong with a context of a file that client-go would say less well.
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
