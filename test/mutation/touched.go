package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

// touched returns the mutants whose own file is among the changed ones, then those that name a behavior whose spec's file is. Files are
// relative to the repository's root.
func touched(mutants []Mutant, catalog []plan.Behavior, files []string) []Mutant {
	own := func(m Mutant) bool { return slices.Contains(files, "test/mutation/"+ofBehaviors+"/"+m.Name+".yaml") }
	named := func(m Mutant) bool {
		return slices.ContainsFunc(catalog, func(b plan.Behavior) bool {
			return slices.Contains(m.KilledBy, b.ID) && slices.Contains(files, b.File)
		})
	}
	var first, second []Mutant
	for _, mutant := range mutants {
		switch {
		case own(mutant):
			first = append(first, mutant)
		case named(mutant):
			second = append(second, mutant)
		}
	}
	return append(first, second...)
}

// changedFiles returns the files that differ from the merge base with main, with those that are not committed; on main, from the commit
// before the last. It fails where git or history is missing.
func changedFiles(ctx context.Context, folder string) ([]string, error) {
	base := ""
	for _, main := range []string{"main", "origin/main"} {
		if found, err := git(ctx, folder, "merge-base", "HEAD", main); err == nil {
			base = found
			break
		}
	}
	head, err := git(ctx, folder, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	if base == "" || base == head {
		if base, err = git(ctx, folder, "rev-parse", "HEAD~1"); err != nil {
			return nil, errors.New("the history does not contain the commit before the last")
		}
	}
	changed, err := git(ctx, folder, "diff", "--name-only", "--relative", base)
	if err != nil {
		return nil, err
	}
	added, err := git(ctx, folder, "ls-files", "--others", "--exclude-standard")
	return strings.Fields(changed + "\n" + added), err
}

func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = folder
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
