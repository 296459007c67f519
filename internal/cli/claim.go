package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
)

// reportName is the name of a report in a report directory.
const reportName = "report.json"

// claimFlags are the flags of `runner claim`.
type claimFlags struct {
	streams        genericiooptions.IOStreams
	reports        []string
	implementation string
	cluster        string
	profiles       []string
	file           string
}

func newClaimCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &claimFlags{streams: streams}
	command := &cobra.Command{
		Use:   "claim --report FILE --implementation FILE",
		Short: "Create a conformance claim from a report",
		Long: `Claim makes a ConformanceReport: what an implementation of Kubernetes passes, for each profile (` + strings.Join(profileNames(), ", ") + `).
It contains the report, so that runner verify can compute it again. It is verified before it is written.

A profile is claimed if the run selected all its behaviors and tested at least one; the others are listed. Run all suites with
--slow. The file about the implementation is YAML:

  organization: Example
  project: example-kubernetes
  version: 1.4.0
  url: https://kubernetes.example.com
  contact: [conformance@example.com]
  reproduce: runner --kubeconfig FILE --slow`,
		Example: `  runner --kubeconfig FILE --slow --report-dir out
  runner claim --report out --implementation implementation.yaml

  # Claim what a run in two shards shows of two profiles
  runner claim --report one --report two --profile api,controllers \
    --implementation implementation.yaml`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return flags.run() },
	}
	set := command.Flags()
	set.StringSliceVar(&flags.reports, "report", nil, "`FILE` with the report, report.json or its directory; repeatable: the reports of shards are merged")
	set.StringVar(&flags.implementation, "implementation", "", "`FILE` with the description of the implementation")
	set.StringVar(&flags.cluster, "cluster", "", "`NAME` of the cluster in a report of several clusters")
	set.StringSliceVar(&flags.profiles, "profile", nil, "`PROFILE` to claim: "+strings.Join(profileNames(), ", ")+"; repeatable (default: all that the run tested completely)")
	set.StringVar(&flags.file, "output-file", "claim.json", "`FILE` for the claim")
	return command
}

// profileNames are the names of the profiles.
func profileNames() []string {
	names := make([]string, len(v1alpha1.Profiles))
	for i, profile := range v1alpha1.Profiles {
		names[i] = string(profile)
	}
	return names
}

func (f *claimFlags) run() error {
	source, err := f.source()
	if err != nil {
		return usage(err)
	}
	made, left, err := claim.Make(source)
	if err != nil {
		return usage(fmt.Errorf("--report %s: %w", strings.Join(f.reports, ", "), err))
	}
	catalog, err := catalog()
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := claim.Encode(&content, made); err != nil {
		return err
	}
	of, err := claim.Verify(content.Bytes(), catalog)
	if err != nil {
		return usage(fmt.Errorf("--report %s: %w", strings.Join(f.reports, ", "), err))
	}
	if problems := slices.Concat(of.Problems, of.Catalog); len(problems) > 0 {
		more := ""
		if len(problems) > 1 {
			more = fmt.Sprintf(" (and %d more)", len(problems)-1)
		}
		return usage(fmt.Errorf("--report %s: a claim would not hold: %s%s", strings.Join(f.reports, ", "), problems[0], more))
	}
	if err := writeOutput("claim", f.file, content.Bytes()); err != nil {
		return usage(err)
	}
	lines := append([]string{f.file + ": " + claimTitle(made)}, profileLines(made)...)
	for _, one := range left {
		lines = append(lines, fmt.Sprintf("  %s: not claimed: %s", one.Profile, report.OneLine(one.Reason, reasonLength)))
	}
	printLines(f.streams.Out, lines)
	return nil
}

// reasonLength limits a reason in a line, in characters.
const reasonLength = 300

// source reads what the claim is made of.
func (f *claimFlags) source() (claim.Source, error) {
	source := claim.Source{Cluster: f.cluster}
	switch {
	case len(f.reports) == 0:
		return source, errors.New("--report is required: the report.json of a run, or its directory")
	case f.implementation == "":
		return source, errors.New("--implementation is required: a file that describes what was tested (see `runner claim --help`)")
	}
	for _, name := range f.profiles {
		if err := checkChoice("profile", name, profileNames()...); err != nil {
			return source, err
		}
		source.Profiles = append(source.Profiles, v1alpha1.Profile(name))
	}
	var err error
	if source.Implementation, err = claim.ReadImplementation(f.implementation); err != nil {
		return source, err
	}
	source.Report, err = f.readReport()
	return source, err
}

// readReport returns the content of the report, or of what the reports of shards are merged into.
func (f *claimFlags) readReport() ([]byte, error) {
	files := make([]string, len(f.reports))
	for i, path := range f.reports {
		files[i] = path
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			files[i] = filepath.Join(path, reportName)
		}
	}
	if len(files) == 1 {
		return report.ReadContent(files[0])
	}
	sources, err := read(files)
	if err != nil {
		return nil, err
	}
	merged, err := merge.Reports(sources...)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	err = report.WriteJSON(&content, merged)
	return content.Bytes(), err
}

// catalog returns the behaviors of this runner.
func catalog() ([]v1alpha1.Behavior, error) {
	whole, err := plan.Make(plan.Selection{Slow: true})
	if err != nil {
		return nil, err
	}
	behaviors := make([]v1alpha1.Behavior, len(whole.Catalog))
	for i, behavior := range whole.Catalog {
		behaviors[i] = behavior.Behavior
	}
	return behaviors, nil
}

// claimTitle names what a claim is about.
func claimTitle(of v1alpha1.ConformanceReport) string {
	return fmt.Sprintf("%s %s, Kubernetes %s", of.Implementation.Project, of.Implementation.Version, of.Environment.ServerVersion)
}

// profileLines describe the result of each profile of a claim.
func profileLines(of v1alpha1.ConformanceReport) []string {
	lines := make([]string, len(of.Profiles))
	for i, profile := range of.Profiles {
		skipped := 0
		for _, level := range profile.Levels {
			skipped += level.Skipped
		}
		lines[i] = fmt.Sprintf("  %s: %s: %d passed, %d failed, %d deviated, %d skipped",
			profile.Profile, profile.Conclusion, len(profile.Passed), len(profile.Failed), len(profile.Deviated), skipped)
	}
	return lines
}
