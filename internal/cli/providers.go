package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

// providerChoice is a choice of --provider.
type providerChoice struct {
	name, description string
	// create creates a cluster for the selected behaviors, and returns a function that removes it.
	create func(f *runFlags, ctx context.Context, selected plan.Plan) (created provider.Created, remove func(), err error)
}

const (
	providerEmbedded = "embedded"
	providerKind     = "kind"
	// providerLocal is another name of providerEmbedded.
	providerLocal = "local"
)

// providers are the choices of --provider.
var providers = []providerChoice{
	{providerEmbedded, "an embedded Kubernetes", (*runFlags).createEmbedded},
	{providerKind, "a kind cluster, which needs Docker or Podman", (*runFlags).createKind},
}

// providerUsage names and describes the providers.
func providerUsage() string {
	var choices []string
	for _, choice := range providers {
		choices = append(choices, fmt.Sprintf("%s (%s)", choice.name, choice.description))
	}
	return strings.Join(choices, ", ")
}

// providerNames are the names of the providers.
func providerNames() []string {
	var names []string
	for _, choice := range providers {
		names = append(names, choice.name)
	}
	return names
}

// providerIndex finds the selected provider; negative for an unknown one.
func (f *runFlags) providerIndex() int {
	return slices.IndexFunc(providers, func(choice providerChoice) bool { return choice.name == f.provider })
}

// fillProvider sets the source of the clusters.
func (f *runFlags) fillProvider() error {
	if f.provider == providerLocal {
		f.provider = providerEmbedded
	}
	if err := f.checkProvider(); err != nil {
		return err
	}
	if f.provider == "" {
		f.options.FindClusters = f.clusters.Clusters
		return nil
	}
	f.options.CreateCluster = f.createCluster
	if f.provider == providerEmbedded {
		f.options.FindKubectl = f.kubectlOfEmbedded
	}
	return nil
}

// checkProvider rejects unknown providers, and flags that the provider does not support.
func (f *runFlags) checkProvider() error {
	switch {
	case f.provider != "" && f.providerIndex() < 0:
		return fmt.Errorf("unknown provider %q; choose from %s%s", f.provider, providerUsage(), suggest.Hint(f.provider, providerNames()))
	case f.provider != "" && f.clusters.FirstSet() != "":
		return fmt.Errorf("--provider %s and %s are mutually exclusive", f.provider, f.clusters.FirstSet())
	case f.provider == providerEmbedded && f.options.Settings.ImageRegistry != "":
		return fmt.Errorf("--provider %s and --%s are mutually exclusive: the embedded Kubernetes has its own images", f.provider, registryFlag)
	case f.provider != "" && f.options.Settings.KeepFailed && !f.kind.keep:
		return fmt.Errorf("--%s requires a cluster that is not deleted after the run: use --kubeconfig FILE, or --provider %s with --%s", keepFailedFlag, providerKind, keepClusterFlag)
	case checkChoice(nodesFlag, f.embedded.nodes, nodesChoices...) != nil:
		return checkChoice(nodesFlag, f.embedded.nodes, nodesChoices...)
	case f.provider != providerEmbedded && clusters.FirstSet(f.embedded.set) != "":
		return fmt.Errorf("%s requires --provider %s", clusters.FirstSet(f.embedded.set), providerEmbedded)
	case f.provider != providerKind && clusters.FirstSet(f.kind.set) != "":
		return fmt.Errorf("%s requires --provider %s", clusters.FirstSet(f.kind.set), providerKind)
	case f.provider == "" && clusters.FirstSet(f.embedded.created.set) != "":
		return fmt.Errorf("%s requires --provider %s or --provider %s", clusters.FirstSet(f.embedded.created.set), providerEmbedded, providerKind)
	}
	return nil
}

// createCluster creates a cluster for the selected behaviors, and returns a function that removes it.
func (f *runFlags) createCluster(ctx context.Context, selected plan.Plan) (clusters.Cluster, func(), error) {
	created, remove, err := providers[f.providerIndex()].create(f, ctx, selected)
	if err != nil {
		return clusters.Cluster{}, nil, err
	}
	cluster, err := clusters.Created(f.provider, created)
	if err != nil {
		remove()
	}
	return cluster, remove, err
}

// createEmbedded creates an embedded cluster, with nodes if they are possible and needed.
func (f *runFlags) createEmbedded(ctx context.Context, selected plan.Plan) (provider.Created, func(), error) {
	cluster, err := f.embedded.create(ctx, f.streams.ErrOut, selected.Requires(v1alpha1.Node))
	if err != nil {
		return nil, nil, err
	}
	return cluster, func() { f.embedded.created.destroy(cluster, f.streams.ErrOut) }, nil
}

// createKind creates a kind cluster, with the images of this machine if they are needed.
func (f *runFlags) createKind(ctx context.Context, selected plan.Plan) (provider.Created, func(), error) {
	var images []string
	if selected.Requires(v1alpha1.Node) {
		for _, image := range fixtures.Images() {
			images = append(images, fixtures.WithRegistry(image, f.options.Settings.ImageRegistry))
		}
	}
	kind, err := f.kind.create(ctx, f.streams.ErrOut, images)
	if err != nil {
		return nil, nil, err
	}
	return kind, func() { f.kind.destroy(kind, f.streams.ErrOut) }, nil
}
