// Command snapshot checks a release that goreleaser has created as a user would download it: an archive for each platform with all files, a
// binary for the platform and of the commit, a correct bill of materials, correct checksums, and a runner that runs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// platform is a GOOS and a GOARCH.
type platform struct{ system, architecture string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// release is the output of goreleaser, with its version and commit.
type release struct {
	dir             string
	Version, Commit string
}

func main() {
	dir := flag.String("dist", "bin/dist", "`DIR` that goreleaser has filled")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "snapshot:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	release, err := read(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, platform := range platforms {
		if err := release.check(platform); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", release.name(platform), err))
		}
	}
	if err := errors.Join(append(errs, release.checkSums())...); err != nil {
		return err
	}
	fmt.Printf("%d archives of v%s in %s are whole\n", len(platforms), release.Version, dir)
	return nil
}

// read reads the metadata, and checks that the commit is that of the clone.
func read(dir string) (release, error) {
	made := release{dir: dir}
	metadata, err := os.ReadFile(filepath.Join(dir, "metadata.json"))
	if err == nil {
		err = json.Unmarshal(metadata, &made)
	}
	if err != nil {
		return made, fmt.Errorf("read what goreleaser made: %w", err)
	}
	head, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return made, fmt.Errorf("ask git for the commit: %w", err)
	}
	if commit := strings.TrimSpace(string(head)); commit != made.Commit {
		return made, fmt.Errorf("it is of commit %q, want %s", made.Commit, commit)
	}
	return made, nil
}

// name is the name of a platform's files, without extension.
func (r release) name(p platform) string {
	return fmt.Sprintf("deletion-conformance_%s_%s_%s", r.Version, p.system, p.architecture)
}

// archive is the name of a platform's archive.
func (r release) archive(p platform) string {
	if p.system == "windows" {
		return r.name(p) + ".zip"
	}
	return r.name(p) + ".tar.gz"
}

func (r release) bill(p platform) string { return r.name(p) + ".cdx.json" }

// check checks the archive of a platform.
func (r release) check(p platform) error {
	dir, err := os.MkdirTemp("", "snapshot-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := unpack(filepath.Join(r.dir, r.archive(p)), dir); err != nil {
		return fmt.Errorf("unpack it: %w", err)
	}
	content := os.DirFS(filepath.Join(dir, r.name(p)))
	return errors.Join(r.checkFiles(content), r.checkBinary(filepath.Join(dir, r.name(p)), p))
}

// checkFiles checks the files next to the binary.
func (r release) checkFiles(content fs.FS) error {
	var errs []error
	for name, holds := range map[string]string{
		"LICENSE": "Apache License", "README.md": "# Deletion conformance", "CHANGELOG.md": "## [", "docs/licences.md": "| MIT |",
		"man/man1/runner.1": "deletion-conformance v" + r.Version, "man/man1/runner-cluster-up.1": "deletion-conformance v" + r.Version,
		"completions/runner.bash": "complete -o default", "completions/_runner": "#compdef runner",
		"completions/runner.fish": "complete -c runner", "completions/runner.ps1": "Register-ArgumentCompleter",
	} {
		file, err := fs.ReadFile(content, name)
		if err == nil && !strings.Contains(string(file), holds) {
			err = fmt.Errorf("%s holds no %q", name, holds)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
