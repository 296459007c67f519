package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

const (
	// kubernetesSource is the module that builds Kubernetes, below the repository's root.
	kubernetesSource = "kubernetes"
	// switchName is the file next to the binary with the name of the active mutant.
	switchName = "active-mutant"
	// stampName is the file that describes what the existing Kubernetes was built from.
	stampName = "built-from"
)

// laboratory is a directory with a runner and a Kubernetes with all mutants:
//
//	runner                   built from the repository
//	kubernetes/v1.36.3/      with all mutants, none of which is active; includes kubectl
//	source/                  the changed modules, and the one that builds them
//	runs/NAME/               the two again, with one mutant that acts, and what was reported
type laboratory struct {
	folder string
	// faults is the seed of the network faults of runs; 0 for none.
	faults uint64
}

func (l laboratory) path(elements ...string) string {
	return filepath.Join(append([]string{l.folder}, elements...)...)
}

// recipe describes what Kubernetes is built from.
type recipe struct {
	sources sources
	// files are the changed and added files, by import path.
	files map[string][]byte
	stamp string
}

// recipeOf inserts the mutants.
func recipeOf(ctx context.Context, mutants []Mutant) (recipe, error) {
	sources, err := sourcesOf(ctx, mutants)
	if err != nil {
		return recipe{}, err
	}
	files, err := sources.mutate(mutants)
	if err != nil {
		return recipe{}, err
	}
	stamp, err := stampOf(files)
	return recipe{sources, files, stamp}, err
}

// build builds the runner, and Kubernetes unless it is up to date.
func (l laboratory) build(ctx context.Context, recipe recipe) error {
	if err := os.MkdirAll(l.folder, 0o755); err != nil {
		return err
	}
	// Without the commit, so that the binary depends only on its source.
	if _, err := goTool(ctx, ".", "build", "-buildvcs=false", "-o", l.path("runner"), "./cmd/runner"); err != nil {
		return err
	}
	if l.isBuilt(recipe) {
		return nil
	}
	if err := errors.Join(os.RemoveAll(l.path(stampName)), os.RemoveAll(l.path("kubernetes")), l.copySource(recipe)); err != nil {
		return err
	}
	built, err := build.Kubernetes(ctx, build.Options{
		Source: l.path("source", "build"), Into: l.path("kubernetes"), Out: visible.NewLog(os.Stderr),
	})
	if err != nil {
		return err
	}
	if _, err := build.Kubectl(ctx, built, os.Stderr); err != nil {
		return err
	}
	return os.WriteFile(l.path(stampName), []byte(recipe.stamp), 0o644)
}

// isBuilt reports whether the existing Kubernetes is up to date.
func (l laboratory) isBuilt(recipe recipe) bool {
	built, err := os.ReadFile(l.path(stampName))
	return err == nil && string(built) == recipe.stamp
}

// kubernetes returns the directory of the build.
func (l laboratory) kubernetes() (string, error) {
	built, err := filepath.Glob(l.path("kubernetes", "v*"))
	if err != nil {
		return "", err
	}
	if len(built) != 1 {
		return "", fmt.Errorf("in %s are %d versions, not one: remove that folder, and all is built again", l.path("kubernetes"), len(built))
	}
	return built[0], nil
}

// sources are the directories of the modules that Kubernetes is built from, by module.
type sources map[string]string

// sourcesOf finds the modules that mutants change, and downloads them if necessary.
func sourcesOf(ctx context.Context, mutants []Mutant) (sources, error) {
	sources := sources{}
	for _, mutant := range mutants {
		for _, change := range mutant.Changes {
			sources[moduleOf(change.File)] = ""
		}
	}
	modules := slices.Sorted(maps.Keys(sources))
	if _, err := goTool(ctx, kubernetesSource, append([]string{"mod", "download"}, modules...)...); err != nil {
		return nil, err
	}
	listed, err := goTool(ctx, kubernetesSource, append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, modules...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(listed) {
		module, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		sources[module] = folder
	}
	return sources, nil
}

// mutate returns the files of Kubernetes with mutants, and the switch of each package, by import path.
func (s sources) mutate(mutants []Mutant) (map[string][]byte, error) {
	byFile := map[string][]Mutant{}
	for _, mutant := range mutants {
		for _, change := range mutant.Changes {
			with := byFile[change.File]
			if len(with) == 0 || with[len(with)-1].Name != mutant.Name {
				byFile[change.File] = append(with, mutant)
			}
		}
	}
	mutated := map[string][]byte{}
	for file, with := range byFile {
		module := moduleOf(file)
		source, err := os.ReadFile(filepath.Join(s[module], strings.TrimPrefix(file, module)))
		if err != nil {
			return nil, err
		}
		if mutated[file], err = mutate(source, file, with); err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly)
		if err != nil {
			return nil, err
		}
		mutated[path.Join(path.Dir(file), "mutant_switch.go")] = switchFor(tree.Name.Name)
	}
	return mutated, nil
}

// moduleOf returns the module of a package of Kubernetes: the first two elements of its import path.
func moduleOf(file string) string {
	elements := strings.SplitN(file, "/", 3)
	return path.Join(elements[:2]...)
}

// stampOf identifies what Kubernetes is built from.
func stampOf(files map[string][]byte) (string, error) {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%s %d\n%s\n", name, len(files[name]), files[name])
	}
	for _, pattern := range buildFiles {
		found, err := filepath.Glob(filepath.Join(kubernetesSource, pattern))
		if err != nil {
			return "", err
		}
		for _, name := range found {
			content, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(hash, "%s %d\n%s\n", name, len(content), content)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)) + "\n", nil
}

// buildFiles are the files of the module that builds Kubernetes.
var buildFiles = []string{"go.mod", "go.sum", "*.go", "kubectl/*.go"}

// copySource creates the source directory: a copy of each module with its mutants, and of the module that builds Kubernetes with
// replacements by these copies.
func (l laboratory) copySource(recipe recipe) error {
	if err := os.RemoveAll(l.path("source")); err != nil {
		return err
	}
	if err := copyGo(kubernetesSource, l.path("source", "build")); err != nil {
		return err
	}
	name := l.path("source", "build", "go.mod")
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, content, nil)
	if err != nil {
		return err
	}
	for module, original := range recipe.sources {
		copied := l.path("source", path.Base(module))
		if err := errors.Join(copyGo(original, copied), mod.DropReplace(module, ""), mod.AddReplace(module, "", copied, "")); err != nil {
			return err
		}
	}
	for file, content := range recipe.files {
		module := moduleOf(file)
		if err := os.WriteFile(l.path("source", path.Base(module), strings.TrimPrefix(file, module)), content, 0o644); err != nil {
			return err
		}
	}
	mod.Cleanup()
	if content, err = mod.Format(); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// copyGo copies a module without its tests.
func copyGo(from, to string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}

// goTool runs a go command in a folder and returns what it printed.
func goTool(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w", strings.Join(arguments, " "), folder, err)
	}
	return strings.TrimSpace(string(output)), nil
}
