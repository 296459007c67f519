package build

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/version"
)

// module is a directory in which Go can build Kubernetes.
type module struct {
	dir  string
	tool goTool
	// temporary is the directory for the go command's temporary files.
	temporary string
	// generated is set when its go.mod was generated and contains only what Go cannot derive.
	generated bool
}

// module returns the committed module for the version it requires, and a generated one next to the binary for others.
func (b build) module(ctx context.Context, tool goTool) (module, error) {
	if b.version.EqualTo(b.source.version) {
		return module{dir: b.source.dir, tool: tool}, nil
	}
	upstream, err := upstreamModule(ctx, tool, b.version)
	if err != nil {
		return module{}, err
	}
	generated, err := generateModule(b.source.mod.Module.Mod.Path, upstream, b.version)
	if err != nil {
		return module{}, err
	}
	dir := filepath.Join(b.dir, "source-"+b.name)
	if err := os.RemoveAll(dir); err != nil {
		return module{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return module{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), generated, 0o644); err != nil {
		return module{}, err
	}
	for name, content := range b.source.files {
		if filepath.Ext(name) != ".go" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			return module{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return module{}, err
		}
	}
	return module{dir: dir, tool: tool, generated: true}, nil
}

// generateModule generates a go.mod that builds the version. Kubernetes' own go.mod replaces its libraries with directories of its
// repository, which are not available to other modules; the generated file replaces them with the published versions. It copies the other
// replacements, the Go version and the GODEBUG settings.
func generateModule(path string, upstream *modfile.File, version *version.Version) ([]byte, error) {
	mod := &modfile.File{}
	steps := []error{
		mod.AddModuleStmt(path),
		mod.AddRequire(kubernetesModule, tag(version)),
	}
	if upstream.Go != nil {
		steps = append(steps, mod.AddGoStmt(upstream.Go.Version))
	}
	for _, setting := range upstream.Godebug {
		steps = append(steps, mod.AddGodebug(setting.Key, setting.Value))
	}
	for _, replace := range upstream.Replace {
		switch {
		case strings.HasPrefix(replace.New.Path, "./staging/"):
			steps = append(steps, mod.AddReplace(replace.Old.Path, "", replace.Old.Path, staging(version)))
		case replace.New.Version != "":
			steps = append(steps, mod.AddReplace(replace.Old.Path, replace.Old.Version, replace.New.Path, replace.New.Version))
		}
	}
	for _, err := range steps {
		if err != nil {
			return nil, fmt.Errorf("generate a go.mod for Kubernetes %s: %w", version, err)
		}
	}
	mod.Cleanup()
	return mod.Format()
}

// upstreamModule returns Kubernetes' own go.mod of the version, from the module proxy.
func upstreamModule(ctx context.Context, tool goTool, version *version.Version) (*modfile.File, error) {
	elsewhere, err := os.MkdirTemp("", "deletion-conformance-module-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(elsewhere) }()
	output, runErr := tool.output(ctx, elsewhere, "mod", "download", "-json", kubernetesModule+"@"+tag(version))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var download struct{ GoMod, Error string }
	if err := json.Unmarshal(output, &download); err != nil {
		return nil, fmt.Errorf("fetch its go.mod from the module proxy: %w", runErr)
	}
	if download.Error != "" {
		return nil, fmt.Errorf("the module proxy does not have this version: %s\n%s",
			download.Error, knownVersions(ctx, tool, elsewhere))
	}
	content, err := os.ReadFile(download.GoMod)
	if err != nil {
		return nil, fmt.Errorf("read its go.mod: %w", err)
	}
	return modfile.Parse(download.GoMod, content, nil)
}

// oldestMinor is the first minor version that this project builds.
const oldestMinor = 29

// knownVersions describes the versions that the module proxy has.
func knownVersions(ctx context.Context, tool goTool, dir string) string {
	output, err := tool.output(ctx, dir, "list", "-m", "-versions", kubernetesModule)
	if err != nil {
		return "its versions could not be listed: " + err.Error()
	}
	var names []string
	for _, text := range strings.Fields(string(output)) { // the oldest first
		if version, err := ParseVersion(text); err == nil && version.Minor() >= oldestMinor {
			names = append(names, version.String())
		}
	}
	return "available versions: " + strings.Join(names, " ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
