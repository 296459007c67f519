package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/framework/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

// fixtureFlags are the flags of `runner fixture`.
type fixtureFlags struct {
	streams   genericiooptions.IOStreams
	clusters  clusters.Flags
	policies  policyFlags
	namespace string
}

func newFixtureCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &fixtureFlags{streams: streams}
	command := &cobra.Command{
		Use:   "fixture RESOURCE",
		Short: "Print an object of a kind that the cluster would take",
		Long: `Fixture derives a manifest from the OpenAPI schema that the cluster publishes of a resource, and tries it there in a
server-side dry-run: nothing is created. What the server refuses is mended where the schema and its rules tell how.
Labels, annotations and the pod overlay are part of the dry-run, not of what is printed: a run adds them itself.

What it prints is a start for a fixture of your own, also where the server still refuses it: then standard error says for
which fields.`,
		Example: `  runner fixture --kubeconfig FILE widgets.example.com > widget.yaml
  runner fixture --kubeconfig FILE deployments.apps/v1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("name one resource, such as widgets.example.com: `kubectl api-resources` lists those there are"))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return flags.run(command.Context(), args[0]) },
	}
	flags.clusters.AddTo(command.Flags())
	flags.policies.addTo(command.Flags())
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", "default", "`NAME` of the namespace that the dry-run is for")
	return command
}

func (f *fixtureFlags) run(ctx context.Context, resource string) error {
	added, err := f.policies.overlay()
	if err == nil {
		err = run.CheckOverlay(added, run.FlagName)
	}
	if err != nil {
		return usage(err)
	}
	named, err := f.clusters.Clusters()
	if err != nil {
		return usage(err)
	}
	if len(named) != 1 {
		return usage(fmt.Errorf("%d clusters are named: a fixture is for one", len(named)))
	}
	finder, err := manifest.NewFinder(named[0].Provider.RESTConfig(), added)
	if err != nil {
		return usage(err)
	}
	mapping, err := finder.Resource(resource)
	if err != nil {
		if errors.Is(err, manifest.ErrUnknown) {
			return usage(err)
		}
		return &exit{ExitUntested, err}
	}
	object, refused := finder.Derive(ctx, mapping, f.namespace)
	if object == nil {
		return &exit{ExitUntested, refused}
	}
	printed, err := yaml.Marshal(object.Object)
	if err != nil {
		return err
	}
	if _, err := f.streams.Out.Write(printed); err != nil {
		return err
	}
	return usage(refused)
}
