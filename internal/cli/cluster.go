package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

func newClusterCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "cluster",
		Short: "Build or run an embedded Kubernetes",
		Args:  noArguments,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newClusterUpCommand(streams), newClusterBuildCommand(streams))
	return command
}

func newClusterUpCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags, kubeconfig := embeddedFlags{}, ""
	command := &cobra.Command{
		Use:   "up",
		Short: "Run an embedded Kubernetes until Ctrl-C",
		Long: `Up starts an embedded Kubernetes on loopback, writes a kubeconfig for it, and deletes both when it is interrupted. If a component
ends, it deletes both, too, prints the last lines of the component's log, and exits with code 4.`,
		Example: `  runner cluster up --write-kubeconfig kubeconfig
  KUBECONFIG=kubeconfig kubectl get namespaces     # in another terminal`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx := command.Context()
			if _, err := os.Stat(kubeconfig); err == nil {
				return usage(fmt.Errorf("--write-kubeconfig %s: the file exists; remove it, or choose another", kubeconfig))
			}
			noteCleanup(ctx, "runner cleanup")
			cluster, err := flags.create(ctx, streams.ErrOut, true)
			if err != nil {
				return err
			}
			defer flags.created.destroy(cluster, streams.ErrOut)
			path := cluster.Kubeconfig()
			if kubeconfig != "" {
				if err := copyPrivate(path, kubeconfig); err != nil {
					return usage(err)
				}
				defer func() { _ = os.Remove(kubeconfig) }()
				path = kubeconfig
			}
			if reason := cluster.Features().Unsupported[v1alpha1.Node]; reason != "" {
				_, _ = fmt.Fprintf(streams.ErrOut, "without a node: %s\n", reason)
			}
			_, _ = fmt.Fprintf(streams.Out, "export KUBECONFIG=%s\n", path)
			_, _ = fmt.Fprintln(streams.ErrOut, "press Ctrl-C to delete it")
			if err := cluster.AwaitEnd(ctx); err != nil {
				return exitWith(ExitRunError, fmt.Errorf("run the embedded cluster: %w\nthe cluster is removed; start it again with `runner cluster up`", err))
			}
			return nil
		},
	}
	addGroups(command, flags.addTo)
	command.Flags().StringArrayVar(&flags.archives, archiveFlag, nil, "`FILE` with images to import into the node, as make image writes it; repeatable")
	command.Flags().StringVar(&kubeconfig, "write-kubeconfig", "", "`FILE` for the kubeconfig; it must not exist (default: a file in the cluster's temporary directory)")
	return command
}

// copyPrivate copies a file with credentials to a path that must not exist.
func copyPrivate(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	_, err = file.Write(content)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", to, err)
	}
	return nil
}

func newClusterBuildCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var (
		source          sourceFlags
		version, module string
		alone           bool
	)
	command := &cobra.Command{
		Use:   "build",
		Short: "Build the embedded Kubernetes from source, or download it",
		Long: `Build builds etcd and Kubernetes with Go, from the module that the runner contains into the user's cache, or from the module in the
directory of --module into the directory of the runner. A first build takes minutes; binaries that are up to date are not built again.
With --kubernetes-source auto it downloads the official binaries if it can, and builds only what was built before or cannot be downloaded.

It prints the directory of the binaries. With --api-server-alone it builds etcd and the API server only, so that behaviors that need
nothing else can run before the rest is built. If all is there, it builds and prints nothing.`,
		Example: `  # Run what needs an API server only, minutes before all is built
  runner --provider embedded \
    --kubernetes-binaries "$(runner cluster build --api-server-alone)"

  # Before you go offline
  runner cluster build --kubernetes-source download --kubernetes-version 1.34.4`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := source.check(); err != nil {
				return usage(err)
			}
			store := kubernetesStore
			if module != "" { // only a flag names one: the current directory may be another user's
				store = cloneBinaries
			}
			into, err := store()
			if err != nil {
				return err
			}
			options := source.options(version, into)
			options.Module, options.APIServerAlone, options.Update, options.Out = module, alone, true, streams.ErrOut
			options.Node = embedded.NodeSupported() == nil
			dir, err := binaries.Get(command.Context(), options)
			if err != nil {
				return usage(err)
			}
			if dir != "" {
				_, _ = fmt.Fprintln(streams.Out, dir)
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&version, versionFlag, os.Getenv(build.VersionVariable), "`VERSION` to build, such as 1.34.4 (default: $"+build.VersionVariable+", else "+build.DefaultVersion()+")")
	flags.BoolVar(&alone, "api-server-alone", false, "build etcd and the API server only, unless all is there")
	flags.StringVar(&module, "module", "", "`DIR` of the module to build (default: the embedded module)")
	source.addTo(flags, binaries.Build)
	return command
}
