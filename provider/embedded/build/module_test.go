package build

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/version"
)

const upstreamGoMod = `module k8s.io/kubernetes

go 1.24.0

godebug default=go1.24

require (
	github.com/spf13/cobra v1.9.1
	k8s.io/api v0.0.0
)

replace (
	github.com/elsewhere/forked => github.com/upstream/forked v1.2.3
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
`

func TestGenerateModule(t *testing.T) {
	upstream, err := modfile.Parse("go.mod", []byte(upstreamGoMod), nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := generateModule("example.com/kubernetes", upstream, version.MustParseSemantic("1.34.4"))
	if err != nil {
		t.Fatal(err)
	}
	generated, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	if generated.Module.Mod.Path != "example.com/kubernetes" || generated.Go.Version != "1.24.0" {
		t.Errorf("want module example.com/kubernetes with go 1.24.0, got:\n%s", content)
	}
	if len(generated.Godebug) != 1 || generated.Godebug[0].Value != "go1.24" {
		t.Errorf("want upstream's GODEBUG settings, got:\n%s", content)
	}
	if len(generated.Require) != 1 || generated.Require[0].Mod.String() != "k8s.io/kubernetes@v1.34.4" {
		t.Errorf("want only k8s.io/kubernetes v1.34.4 to be required, got:\n%s", content)
	}
	want := map[string]string{
		"github.com/elsewhere/forked": "github.com/upstream/forked@v1.2.3",
		"k8s.io/api":                  "k8s.io/api@v0.34.4",
		"k8s.io/client-go":            "k8s.io/client-go@v0.34.4",
	}
	if len(generated.Replace) != len(want) {
		t.Errorf("want %d replacements, got:\n%s", len(want), content)
	}
	for _, replace := range generated.Replace {
		if replace.New.String() != want[replace.Old.Path] {
			t.Errorf("want %s for %s, got %s", want[replace.Old.Path], replace.Old.Path, replace.New)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for _, text := range []string{"1.34.4", "v1.34.4", " 1.34.4\n"} {
		version, err := ParseVersion(text)
		if err != nil || tag(version) != "v1.34.4" || staging(version) != "v0.34.4" {
			t.Errorf("%q: got %v, %v", text, version, err)
		}
	}
	for _, text := range []string{"", "1.34", "2.0.0", "1.34.4-rc.1", "latest", "1.34.99999999999999999999"} {
		if version, err := ParseVersion(text); err == nil {
			t.Errorf("%q: want an error, got %v", text, version)
		}
	}
}

func TestVersion_Stamped(t *testing.T) {
	flags := strings.Join(buildFlags(version.MustParseSemantic("1.29.6"), map[string]string{"buildDate": "2024-06-11T20:08:38Z"}), " ")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.29.6",
		"-X k8s.io/component-base/version.gitMinor=29",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.29.6",
		"-X k8s.io/client-go/pkg/version.buildDate=2024-06-11T20:08:38Z",
		"kubernetes_before_1_34",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("want %s in %s", want, flags)
		}
	}
	if flags := strings.Join(buildFlags(version.MustParseSemantic("1.34.0"), nil), " "); strings.Contains(flags, "before_1_34") {
		t.Errorf("1.34 is not before 1.34: %s", flags)
	}
}

func TestFind_Versions(t *testing.T) {
	into := t.TempDir()
	write(t, into, map[string]string{
		"v1.9.11/kubernetes": "", "v1.34.4/kubernetes": "", "v1.36.3/of-another-build": "", "latest/kubernetes": "",
	})
	for asked, want := range map[string]string{"v1.9.11": "v1.9.11", "1.34.4": "v1.34.4"} {
		if dir, err := Find(into, asked); err != nil || dir != filepath.Join(into, want) {
			t.Errorf("%q: want %s, got %s, %v", asked, want, dir, err)
		}
	}
	if _, err := Find(into, "1.36.3"); err == nil || !strings.Contains(err.Error(), "runner cluster build --kubernetes-version 1.36.3") {
		t.Errorf("want to be told how to build it, got: %v", err)
	}
}
