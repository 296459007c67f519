package build

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Half of a first `make run` compiles packages that the runner and Kubernetes share, unless Go compiles them once, which requires the same
// versions (and flags: see the Makefile). The same applies to sample-apiserver.
func TestModules_SharedVersions(t *testing.T) {
	theirs := versionsOfPackages(t, "../../../kubernetes", ".")
	for dir, name := range map[string]string{runner: "./cmd/runner", "../../../tools/sample-apiserver": "k8s.io/sample-apiserver"} {
		ours := versionsOfPackages(t, dir, name)
		maps.DeleteFunc(ours, func(name, version string) bool {
			return theirs[name] == "" || strings.HasPrefix(name, differing) || dir == runner && (strings.HasPrefix(version, "k8s.io/") || slices.Contains(ofKubernetes, version[:strings.LastIndex(version, "@")]))
		})
		if len(ours) < 100 {
			t.Errorf("want hundreds of packages in both %s and kubernetes, got %d", dir, len(ours))
		}
		told := map[string]bool{}
		for name, version := range ours {
			if message := version + ", and " + theirs[name] + " in kubernetes/go.mod"; version != theirs[name] && !told[message] {
				told[message] = true
				t.Errorf("%s/go.mod: %s: require the same version in both, with go get", dir, message)
			}
		}
	}
}

func TestCompilerFlags_Makefile(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range CompilerFlags {
		if !strings.Contains(string(makefile), flag) {
			t.Errorf("GOFLAGS in the Makefile lacks %s", flag)
		}
	}
}

func TestWithoutCompilerFlags(t *testing.T) {
	given := "{'GOFLAGS': '-mod=mod -trimpath '-gcflags=all=-dwarf=false -l' -gcflags=std=-dwarf=false'}"
	if got, want := withoutCompilerFlags.Replace(given), "{'GOFLAGS': '-mod=mod'}"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// runner is the directory of the runner's module. It requires older Kubernetes modules, so that projects that import its packages can keep
// theirs.
const runner = "../../.."

// ofKubernetes are libraries of which the runner has the versions of these older modules, because newer ones may not compile with them.
var ofKubernetes = []string{"github.com/google/cel-go", "github.com/antlr4-go/antlr/v4", "golang.org/x/exp"}

// differing is a small library whose newer versions have a license that the runner avoids.
const differing = "github.com/cyphar/filepath-securejoin"

// versionsOfPackages returns the modules, with their versions, of all packages that a package depends on, by import path, except the
// standard library and the main module.
func versionsOfPackages(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	const format = `{{with .Module}}{{if not .Main}}{{$.ImportPath}} {{.Path}}@{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}{{end}}`
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=providerless", "-f", format, name)
	command.Dir, command.Env, command.Stderr = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0"), os.Stderr
	listed, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		if name, version, found := strings.Cut(strings.TrimSpace(line), " "); found {
			versions[name] = version
		}
	}
	return versions
}
