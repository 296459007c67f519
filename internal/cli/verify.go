package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/visible"
)

// mostProblems limits the printed problems of a claim.
const mostProblems = 20

// verified is the result of a verification, as --output json prints it.
type verified struct {
	File     string                   `json:"file"`
	Verified bool                     `json:"verified"`
	Problems []claim.Problem          `json:"problems"`
	Profiles []v1alpha1.ProfileResult `json:"profiles"`

	claim v1alpha1.ConformanceReport
}

func newVerifyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	format := ""
	command := &cobra.Command{
		Use:   "verify FILE|DIR...",
		Short: "Verify claims of conformance",
		Long: `Verify computes a claim again from the report that it contains, without a cluster. Of a directory it verifies all claims. It checks that
  - the report contains every behavior of this runner, and the run selected all those of the claimed profiles, in all shards;
  - outcomes agree with failures, reasons, versions, features, preflight findings and the time of each request and event;
  - recorded histories of passed behaviors keep what is promised of every object: finalizers hold it, its deletion is final;
  - verdicts, figures, counts and versions in the claim follow from the report.

It does not repeat the assertions of each behavior, and it cannot show that a run took place: a claim is not signed. To be sure,
reproduce the run with the command in the claim.

Exit codes:
  0    every claim holds
  1    a claim does not hold
  2    wrong input`,
		Example: `  runner verify claim.json
  runner verify claims --output json`,
		Args: claimPaths,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkChoice("output", format, "text", "json"); err != nil {
				return usage(err)
			}
			results, err := verify(args)
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

// verify verifies the claims at some paths. Errors are wrong input.
func verify(paths []string) ([]verified, error) {
	files, err := claimFiles(paths, "")
	if err != nil {
		return nil, usage(err)
	}
	known, err := catalogue()
	if err != nil {
		return nil, err
	}
	results := make([]verified, len(files))
	for i, file := range files {
		read, err := claim.Read(file)
		if err != nil {
			return nil, usage(err)
		}
		problems := append([]claim.Problem{}, claim.Verify(read, known)...)
		results[i] = verified{File: file, Verified: len(problems) == 0, Problems: problems, Profiles: read.Profiles, claim: read}
	}
	return results, nil
}

// claimFiles returns the files at some paths, and the claims in directories except one. It fails for a directory without any.
func claimFiles(paths []string, except string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read claims: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && except != "" && isSame(file, except) {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".json" {
				return err
			}
			content, err := os.ReadFile(file)
			if err == nil && claim.IsClaim(content) {
				files = append(files, file)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read claims: %w", err)
		}
		if len(files) == before {
			return nil, fmt.Errorf("read claims: the directory %s has none", path)
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
	if v.Verified {
		return append([]string{fmt.Sprintf("%s: verified: %s", v.File, claimTitle(v.claim))}, profileLines(v.claim)...)
	}
	lines := []string{fmt.Sprintf("%s: does not hold: %s", v.File, claimTitle(v.claim))}
	for i, problem := range v.Problems {
		if i == mostProblems {
			lines = append(lines, fmt.Sprintf("  and %d more", len(v.Problems)-i))
			break
		}
		lines = append(lines, "  "+problem.String())
	}
	return lines
}
