package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
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

Claims may have been made by runners with other catalogues. They are verified with the catalogue that they contain, and the site
marks them.

Exit codes:
  0    the site was written
  1    a claim does not hold; nothing was written
  2    wrong input`,
		Example: `  runner site claims --output-dir site`,
		Args:    claimPaths,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := claimFiles(args, dir)
			if err != nil {
				return usage(err)
			}
			pages, results, err := examine(files)
			if err != nil {
				return err
			}
			if len(results) > 0 {
				for _, result := range results {
					printLines(streams.Out, result.lines())
				}
				return exitWith(ExitFailed, fmt.Errorf("%d of %d claims do not hold: no site was written", len(results), len(files)))
			}
			if err := pages.Write(dir); err != nil {
				return usage(err)
			}
			printLines(streams.Out, []string{fmt.Sprintf("%s: %d claims", dir, len(files))})
			return nil
		},
	}
	command.Flags().StringVar(&dir, "output-dir", "site", "`DIR` for the site; created if it does not exist")
	return command
}

// examine adds the claims to a site, and returns those that do not hold.
func examine(files []string) (*site.Site, []verified, error) {
	known, err := catalogue()
	if err != nil {
		return nil, nil, err
	}
	pages, broken := site.New(), []verified(nil)
	for _, file := range files {
		read, err := claim.Read(file)
		if err != nil {
			return nil, nil, usage(err)
		}
		result, err := add(pages, file, read, known)
		if err != nil {
			return nil, nil, usage(fmt.Errorf("%s: %w", file, err))
		}
		if !result.Verified {
			broken = append(broken, result)
		}
	}
	return pages, broken, nil
}

// add adds a claim to a site if it holds.
func add(pages *site.Site, file string, read v1alpha1.ConformanceReport, known []v1alpha1.Behavior) (verified, error) {
	examined := claim.Examine(read, known)
	if len(examined.Problems) > 0 {
		return verified{File: file, Problems: examined.Problems, claim: read}, nil
	}
	return verified{File: file, Verified: true}, pages.Add(file, read, examined)
}
