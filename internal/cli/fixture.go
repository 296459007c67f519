package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

// fixtureFlags are the flags of `runner fixture`.
type fixtureFlags struct {
	streams   genericiooptions.IOStreams
	clusters  clusters.Flags
	policies  policyFlags
	namespace string
	// file gets the manifest; empty for standard output.
	file string
}

func newFixtureCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &fixtureFlags{streams: streams}
	command := &cobra.Command{
		Use:   "fixture RESOURCE",
		Short: "Print a manifest of a resource that the cluster accepts",
		Long: `Fixture derives a manifest from the OpenAPI schema of a resource and tries it in a server-side dry-run: nothing is created. Fields
that the server refuses are corrected where the schema and its rules allow it. Labels, annotations and the pod overlay are part of the
dry-run and not of the output: a run adds them itself.

The manifest is printed even if the server still refuses it, as a start for your own. Then every object that was tried is printed to
standard error, with the changed fields and the server's response, and at the end the rules that refuse it and the fields to give.
--output-file writes only once there is a manifest, so no empty file stays after an error.`,
		Example: `  runner fixture --kubeconfig FILE widgets.example.com --output-file widget.yaml
  runner fixture --kubeconfig FILE deployments.apps/v1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usage(errors.New("requires one resource, such as widgets.example.com; `kubectl api-resources` lists the resources of a cluster"))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return flags.run(command.Context(), args[0]) },
	}
	addGroups(command, addClusters(&flags.clusters), flags.policies.addTo)
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", "default", "`NAME` of the namespace for the dry-run")
	command.Flags().StringVar(&flags.file, "output-file", "", "`FILE` for the manifest (default: standard output)")
	return command
}

func (f *fixtureFlags) run(ctx context.Context, resource string) (failed error) {
	var added session.Additions
	err := f.policies.fill(&added)
	if err == nil {
		err = added.Check(session.Domain, run.FlagName)
	}
	if err != nil {
		return usage(err)
	}
	named, err := f.clusters.Clusters()
	if err != nil {
		return usage(err)
	}
	if len(named) != 1 {
		return usage(fmt.Errorf("requires exactly one cluster, not %d", len(named)))
	}
	redactor, err := redact.For(named, redact.Scope{Files: append(slices.Clone(f.clusters.Kubeconfigs), f.policies.podOverlay)})
	if err != nil {
		return usage(err)
	}
	defer func() { failed = redactor.Error(failed) }()
	if err := environment.Reach(ctx, named[0].Provider.RESTConfig()); err != nil {
		return &exit{ExitUntested, err}
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
	if errors.Is(refused, manifest.ErrNoNamespace) {
		return usage(refused)
	}
	if object == nil {
		return &exit{ExitUntested, refused}
	}
	if err := f.write(object, redactor); err != nil {
		return usage(err)
	}
	if errors.Is(refused, manifest.ErrName) {
		_, err := fmt.Fprintln(f.streams.ErrOut, redactor.Error(fmt.Errorf("warning: it cannot be tested: %w", refused)))
		return err
	}
	if rejected := (*manifest.Rejected)(nil); errors.As(refused, &rejected) {
		if err := f.printTried(rejected.Tried, redactor); err != nil {
			return err
		}
	}
	return usage(refused)
}

// printTried lists the objects that were tried, with what was changed for each and the server's response.
func (f *fixtureFlags) printTried(tried []manifest.Trial, redactor *redact.Redactor) error {
	for i, trial := range tried {
		line := fmt.Sprintf("tried %d: %s: %s", i+1, strings.Join(trial.Changes, ", "), report.Joined(trial.Refusal))
		if _, err := fmt.Fprintln(f.streams.ErrOut, report.Shorten(redactor.Credentials(line), triedLength)); err != nil {
			return err
		}
	}
	return nil
}

// triedLength limits the line of an object that was tried, in characters.
const triedLength = 600

// write writes a manifest to the file, or prints it. The server's schema may contain what it was sent.
func (f *fixtureFlags) write(object *unstructured.Unstructured, redactor *redact.Redactor) error {
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("print the manifest: %w", err)
	}
	content = []byte(redactor.Credentials(string(content)))
	if f.file == "" {
		_, err = f.streams.Out.Write(content)
		return err
	}
	return writeOutput("manifest", f.file, content)
}

// writeOutput writes a document to the file of --output-file, which is replaced atomically.
func writeOutput(document, file string, content []byte) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("write the %s with --output-file: %s is a directory", document, file)
	}
	if err := maybe.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("write the %s with --output-file: %w", document, err)
	}
	return nil
}
