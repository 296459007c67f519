package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/claim/site"
)

func newSiteCommand(streams genericiooptions.IOStreams) *cobra.Command {
	dir := ""
	command := &cobra.Command{
		Use:   "site DIR...",
		Short: "Write a static site of claims",
		Long: `Site verifies all claims of a directory and writes them as a site: a matrix of implementations, versions and profiles, a page for each
claim and each behavior, the changes between versions, how long deletions took, and badges. The pages need no network, no scripts
and no server.

Descriptions of behaviors are from the catalog of this runner. A claim of another catalog is verified with the catalog that it contains,
and its badges and pages name the runner that has that catalog. Claims of runners with uncommitted changes are marked, too.

A claim that does not hold is left out, and the site is written for the others.

Exit codes:
  0    the site was written
  1    a claim does not hold and was left out
  2    invalid usage or input; nothing was written`,
		Example: `  runner site claims --output-dir site`,
		Args:    claimPaths,
		RunE: func(_ *cobra.Command, args []string) error {
			return writeSite(streams.Out, dir, args)
		},
	}
	command.Flags().StringVar(&dir, "output-dir", "site", "`DIR` for the site; created if it does not exist")
	return command
}

// writeSite writes the site of the claims at some paths that hold.
func writeSite(out io.Writer, dir string, paths []string) error {
	known, err := catalog()
	if err != nil {
		return err
	}
	pages := site.New(dir, known)
	results, err := verify(paths, dir, func(content []byte, of claim.Verification) ([]claim.Problem, error) {
		if len(of.Problems) > 0 {
			return of.Problems, nil
		}
		return nil, pages.Add(content, of)
	})
	if err != nil {
		return err
	}
	holds := func(result verified) bool { return result.Verified }
	if slices.ContainsFunc(results, holds) {
		if err := pages.Write(); err != nil {
			return usage(err)
		}
	}
	left := slices.DeleteFunc(slices.Clone(results), holds)
	if len(left) == len(results) {
		return conclude(out, "text", results)
	}
	for _, result := range left {
		printLines(out, result.lines())
	}
	printLines(out, []string{fmt.Sprintf("%s: %d claims", dir, len(results)-len(left))})
	if len(left) > 0 {
		return exitWith(ExitFailed, fmt.Errorf("%d of %d claims do not hold and were left out of the site", len(left), len(results)))
	}
	return nil
}
