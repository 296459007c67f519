package clusters

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	inClusterFlag = "in-cluster"
	// InCluster is the name of the cluster of a pod in reports.
	InCluster = "in-cluster"
)

// InClusterConfig returns the configuration of the ServiceAccount of the pod in which this process runs. It fails outside of a pod. The flag
// is the one that requires it, for the error.
func InClusterConfig(flag string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("%s: this process does not run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set)", flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: read the credentials of the pod: %s; set automountServiceAccountToken to true in its spec", flag, oneLine(err))
	}
	config.BearerToken = "" // the file has the current one
	return config, nil
}

// inCluster returns the cluster of the pod in which this process runs, with the command line merged in.
func (f *Flags) inCluster() ([]Cluster, error) {
	if other := f.firstSetExcept(inClusterFlag); other != "" {
		return nil, fmt.Errorf("--%s and %s are mutually exclusive", inClusterFlag, other)
	}
	config, err := InClusterConfig("--" + inClusterFlag)
	if err != nil {
		return nil, fmt.Errorf("%w; use --kubeconfig FILE", err)
	}
	kubeconfig, err := kubeconfigOf(InCluster, config)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", inClusterFlag, err)
	}
	cluster, err := f.existing(kubeconfig, InCluster)
	if err != nil {
		return nil, fmt.Errorf("--%s: %s", inClusterFlag, oneLine(err))
	}
	cluster.Flags = f.naming("--"+clientcmd.RecommendedConfigPathFlag, "FILE") // for someone outside
	return []Cluster{cluster}, nil
}
