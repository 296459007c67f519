package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/version"
)

// kubernetesModule is the module that everything is built from.
const kubernetesModule = "k8s.io/kubernetes"

// source is the committed module: a few Go files, the go.mod of the default version and its go.sum.
type source struct {
	dir     string
	version *version.Version
	mod     *modfile.File
	// files maps paths to contents: go.mod, go.sum, and the Go files of its packages except tests.
	files map[string][]byte
}

// readSource reads the module in the directory.
func readSource(dir string) (source, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return source{}, fmt.Errorf("find the source directory %s: %w", dir, err)
	}
	files, err := readFiles(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		return source{}, fmt.Errorf("%s does not contain the module that builds Kubernetes: a clone of "+
			"github.com/deletion-conformance/deletion-conformance contains it in kubernetes/; omit --module to use the embedded module", absolute)
	}
	if err != nil {
		return source{}, fmt.Errorf("read the module that builds Kubernetes: %w", err)
	}
	name := filepath.Join(absolute, "go.mod")
	mod, err := modfile.Parse(name, files["go.mod"], nil)
	if err != nil {
		return source{}, fmt.Errorf("read the module that builds Kubernetes: %w", err)
	}
	version, err := requiredVersion(mod)
	if err != nil {
		return source{}, fmt.Errorf("read %s: %w", name, err)
	}
	return source{dir: absolute, version: version, mod: mod, files: files}, nil
}

// requiredVersion returns the version of Kubernetes that a module requires.
func requiredVersion(mod *modfile.File) (*version.Version, error) {
	for _, require := range mod.Require {
		if require.Mod.Path == kubernetesModule {
			return ParseVersion(require.Mod.Version)
		}
	}
	return nil, fmt.Errorf("it does not require %s, so it is not the module that builds Kubernetes", kubernetesModule)
}

func readFiles(dir string) (map[string][]byte, error) {
	files := map[string][]byte{"go.mod": nil, "go.sum": nil}
	for _, pattern := range []string{"*.go", filepath.Join(kubectl.folder, "*.go")} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if !strings.HasSuffix(path, "_test.go") {
				files[filepath.Join(filepath.Dir(pattern), filepath.Base(path))] = nil
			}
		}
	}
	for name := range files {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files[name] = content
	}
	return files, nil
}

// stamp identifies everything from which a binary is built: the files, the version, the Go toolchain and its settings. Go can determine
// that too, but takes 4 s to check every file of 2,000 packages, and needs their modules. Every run checks for a current build, so the
// check must be fast.
func (s source) stamp(version *version.Version, tool goTool) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n%s\n", s.mod.Module.Mod.Path, version, tool.settings, strings.Join(buildFlags(version, nil), " "))
	for _, name := range sortedKeys(s.files) {
		if !version.EqualTo(s.version) && filepath.Ext(name) != ".go" {
			continue // other versions have their own go.mod
		}
		fmt.Fprintf(hash, "%s %d\n%s\n", name, len(s.files[name]), s.files[name])
	}
	return hex.EncodeToString(hash.Sum(nil)) + "\n"
}

// mutable reports whether the build reads source that the stamp does not cover (a replacement by a directory, a vendor directory, an
// overlay), so that only Go can determine changes.
func (s source) mutable(tool goTool) bool {
	for _, replace := range s.mod.Replace {
		if replace.New.Version == "" {
			return true
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "vendor")); err == nil {
		return true
	}
	return strings.Contains(tool.settings, "-overlay") || strings.Contains(tool.settings, "-modfile")
}
