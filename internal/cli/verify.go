package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// maxProblems limits the printed problems of a claim.
const maxProblems = 20

// notVerified is what is printed with each verified claim.
const notVerified = "The content of the report and the name of the implementation are the word of the author: anyone can invent a report. " +
	"Trust a claim if someone whom you trust has signed it, or reproduce it."

// verified is the result of a verification, as --output json prints it.
type verified struct {
	File     string                   `json:"file"`
	Verified bool                     `json:"verified"`
	Problems []claim.Problem          `json:"problems"`
	Profiles []v1alpha1.ProfileResult `json:"profiles"`
	// NotVerified is what cannot be verified. Modified is set if the runner contains uncommitted changes.
	NotVerified string `json:"notVerified,omitempty"`
	Modified    bool   `json:"modified,omitempty"`

	claim v1alpha1.ConformanceReport
	// unread is why the file could not be read as a claim.
	unread error
}

func newVerifyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	format := ""
	command := &cobra.Command{
		Use:   "verify FILE|DIR...",
		Short: "Verify claims of conformance",
		Long: `Verify derives a claim again from the report that it contains, without a cluster. For a directory it verifies all claims. It checks that
  - the claim and its report have the fields of the schema, each once, and are not too large;
  - the report contains every behavior of this runner, and the run selected all those of the claimed profiles, in all shards;
  - every field of the claim follows from the report, and so do the verdicts and figures in the report.

It cannot check that the report is true: anyone can invent one. Trust a claim that someone whom you trust has signed, which tools such
as cosign and gh verify, or reproduce the run with the command in the claim. docs/claims.md lists what can be forged.

Exit codes:
  0    every claim follows from its report
  1    a claim does not
  2    invalid usage or input`,
		Example: `  runner verify claim.json
  runner verify claims --output json`,
		Args: claimPaths,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkChoice("output", format, "text", "json"); err != nil {
				return usage(err)
			}
			results, err := verify(args, "", func(_ []byte, of claim.Verification) ([]claim.Problem, error) {
				return slices.Concat(of.Problems, of.Catalog), nil
			})
			if err != nil {
				return err
			}
			return conclude(streams.Out, format, results)
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text or json")
	return command
}

// claimPaths requires paths of claims.
func claimPaths(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(fmt.Errorf("requires claims, or directories of claims (see `%s --help`)", command.CommandPath()))
	}
	return nil
}

// verify verifies the claims at some paths: named files, and the claims in directories except one. A function decides which problems of a
// claim count. No file keeps the others from being verified.
func verify(paths []string, except string, problems func([]byte, claim.Verification) ([]claim.Problem, error)) ([]verified, error) {
	known, err := catalog()
	if err != nil {
		return nil, err
	}
	files, err := claimFiles(paths, except)
	if err != nil {
		return nil, usage(err)
	}
	results := make([]verified, 0, len(files))
	for _, file := range files {
		content, err := claim.ReadFile(file.path)
		if err == nil && file.found && !claim.IsClaim(content) {
			continue
		}
		of := claim.Verification{}
		if err == nil {
			if of, err = claim.Verify(content, known); err != nil {
				err = fmt.Errorf("read claim %s: %w", file.path, err)
			}
		}
		if err != nil {
			results = append(results, verified{File: file.path, Problems: []claim.Problem{{Where: "file", What: report.OneLine(err.Error(), reasonLength)}}, unread: err})
			continue
		}
		found, err := problems(content, of)
		if err != nil {
			return nil, usage(err)
		}
		results = append(results, verified{
			File: file.path, Verified: len(found) == 0, Problems: append([]claim.Problem{}, found...), Profiles: of.Claim.Profiles,
			NotVerified: notVerified, Modified: claim.IsModified(of.Claim), claim: of.Claim,
		})
	}
	if len(results) == 0 {
		return nil, usage(fmt.Errorf("read claims: %s has none", strings.Join(paths, ", ")))
	}
	return results, nil
}

// claimFile is a file that may be a claim.
type claimFile struct {
	path string
	// found is set for a file of a directory. If it is of another kind, it is not meant.
	found bool
}

// claimFiles returns the files at some paths, and those of directories except one that may be claims.
func claimFiles(paths []string, except string) ([]claimFile, error) {
	var files []claimFile
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("read claims: %w", err)
		} else if !info.IsDir() {
			files = append(files, claimFile{path: path})
			continue
		}
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && except != "" && isSame(file, except) {
				return fs.SkipDir
			}
			if err == nil && !entry.IsDir() && filepath.Ext(file) == ".json" {
				files = append(files, claimFile{file, true})
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read claims: %w", err)
		}
	}
	return files, nil
}

// isSame reports whether two paths are the same existing file.
func isSame(one, other string) bool {
	first, err := os.Stat(one)
	second, missing := os.Stat(other)
	return err == nil && missing == nil && os.SameFile(first, second)
}

// conclude prints the results of a verification. The error is that of claims that do not hold.
func conclude(out io.Writer, format string, results []verified) error {
	if len(results) == 1 && results[0].unread != nil {
		return usage(results[0].unread)
	}
	broken := 0
	for _, result := range results {
		if !result.Verified {
			broken++
		}
	}
	if format == "json" {
		encoder := json.NewEncoder(visible.JSON(out))
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(results); err != nil {
			return err
		}
	} else {
		for _, result := range results {
			printLines(out, result.lines())
		}
		if broken < len(results) {
			printLines(out, []string{notVerified})
		}
	}
	switch {
	case broken == 0:
		return nil
	case len(results) == 1:
		return exitWith(ExitFailed, errors.New("the claim does not hold"))
	}
	return exitWith(ExitFailed, fmt.Errorf("%d of %d claims do not hold", broken, len(results)))
}

// lines describe the result for people.
func (v verified) lines() []string {
	if v.unread != nil {
		return []string{v.Problems[0].What}
	}
	if v.Verified {
		lines := append([]string{fmt.Sprintf("%s: verified: %s", v.File, claimTitle(v.claim))}, profileLines(v.claim)...)
		if v.Modified {
			lines = append(lines, "  the runner contains uncommitted changes, so no one else has it: "+report.OneLine(v.claim.Runner, reasonLength))
		}
		return lines
	}
	lines := []string{fmt.Sprintf("%s: does not hold: %s", v.File, claimTitle(v.claim))}
	for i, problem := range v.Problems {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("  and %d more", len(v.Problems)-i))
			break
		}
		lines = append(lines, "  "+problem.String())
	}
	return lines
}
