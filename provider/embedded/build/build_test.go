package build

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/version"
)

// smallSource returns a module similar to the one that builds Kubernetes, which builds in a second.
func smallSource() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n\n" +
			"replace k8s.io/kubernetes => ./upstream\n",
		"go.sum":                "",
		"main.go":               "package main\n\nimport \"k8s.io/kubernetes/version\"\n\nfunc main() { print(version.Text) }\n",
		"upstream/go.mod":       "module k8s.io/kubernetes\n\ngo 1.26.0\n",
		"upstream/text.go":      "package upstream\n",
		"upstream/version/v.go": "package version\n\nvar Text = \"first\"\n",
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuild(t *testing.T) {
	source, into := t.TempDir(), t.TempDir()
	write(t, source, smallSource())
	var out bytes.Buffer
	dir, err := Kubernetes(t.Context(), Options{Source: source, Into: into, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	if dir != filepath.Join(into, "v1.36.3") {
		t.Errorf("want v1.36.3 in %s, got %s", into, dir)
	}
	if !strings.Contains(out.String(), "Building Kubernetes 1.36.3 from source. The first build takes about ") {
		t.Errorf("want to be told that it takes minutes, got: %s", &out)
	}
	for _, component := range Components() {
		if said := runs(t, dir, component); said != "first" {
			t.Errorf("%s: want it to run, got %q", component, said)
		}
	}

	write(t, source, map[string]string{"upstream/version/v.go": "package version\n\nvar Text = \"second\"\n"})
	if _, err := Kubernetes(t.Context(), Options{Source: source, Into: into}); err != nil {
		t.Fatal(err)
	}
	if said := runs(t, dir, "etcd"); said != "second" {
		t.Errorf("want the change in a replaced module to be noticed, got %q", said)
	}
	noLeftovers(t, dir)
}

func TestBuild_Failure(t *testing.T) {
	source, into := t.TempDir(), t.TempDir()
	write(t, source, smallSource())
	dir, err := Kubernetes(t.Context(), Options{Source: source, Into: into})
	if err != nil {
		t.Fatal(err)
	}
	write(t, source, map[string]string{"upstream/version/v.go": "package version\n\nvar Text = nonsense\n"})
	_, err = Kubernetes(t.Context(), Options{Source: source, Into: into})
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("want the last lines Go said, got: %v", err)
	}
	if said := runs(t, dir, "etcd"); said != "first" {
		t.Errorf("want the old binary to be kept, got %q", said)
	}
	noLeftovers(t, dir)
}

func TestBuild_Canceled(t *testing.T) {
	source, into := t.TempDir(), t.TempDir()
	write(t, source, smallSource())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := Kubernetes(ctx, Options{Source: source, Into: into})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the reason of the cancellation, got: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	if left, err := filepath.Glob(filepath.Join(into, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestBuild_NoSource(t *testing.T) {
	_, err := Kubernetes(t.Context(), Options{Source: filepath.Join(t.TempDir(), "kubernetes"), Into: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "a clone of") || !strings.Contains(err.Error(), "omit --module") {
		t.Errorf("want to be told where it is, got: %v", err)
	}
	other := t.TempDir()
	write(t, other, map[string]string{"go.mod": "module example.com/other\n", "go.sum": ""})
	_, err = Kubernetes(t.Context(), Options{Source: other, Into: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "does not require k8s.io/kubernetes") {
		t.Errorf("want to be told that it is another module, got: %v", err)
	}
}

func TestBuild_NoGo(t *testing.T) {
	source := t.TempDir()
	write(t, source, smallSource())
	t.Setenv("PATH", t.TempDir())
	_, err := Kubernetes(t.Context(), Options{Source: source, Into: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no Go toolchain in PATH") {
		t.Errorf("want to be told about Go, got: %v", err)
	}
}

func TestStamp(t *testing.T) {
	built, tool := version.MustParseSemantic("1.36.3"), goTool{settings: "go1.26.8"}
	mod, err := modfile.Parse("go.mod", []byte("module example.com/kubernetes\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	base := source{version: built, mod: mod, files: map[string][]byte{"main.go": []byte("a"), "go.mod": []byte("b"), "go.sum": []byte("c")}}
	stamps := map[string]string{base.stamp(built, tool): "nothing"}
	for what, stamp := range map[string]string{
		"the version":   base.stamp(version.MustParseSemantic("1.36.4"), tool),
		"the toolchain": base.stamp(built, goTool{settings: "go1.26.9"}),
		"a file":        withFile(base, "main.go", "z").stamp(built, tool),
		"go.sum":        withFile(base, "go.sum", "z").stamp(built, tool),
		"a new file":    withFile(base, "more.go", "").stamp(built, tool),
	} {
		if other, same := stamps[stamp]; same {
			t.Errorf("changing %s and changing %s give the same stamp", what, other)
		}
		stamps[stamp] = what
	}
	another := version.MustParseSemantic("1.30.14")
	if withFile(base, "go.sum", "z").stamp(another, tool) != base.stamp(another, tool) {
		t.Error("another version is built again, though its go.mod is its own")
	}
}

func withFile(s source, name, content string) source {
	s.files = maps.Clone(s.files)
	s.files[name] = []byte(content)
	return s
}

func runs(t *testing.T, dir, component string) string {
	t.Helper()
	output, err := exec.Command(filepath.Join(dir, component)).CombinedOutput()
	if err != nil {
		t.Fatalf("run %s: %v", component, err)
	}
	return string(output)
}

// noLeftovers fails the test if the directory contains more than the binary, its names and the stamp.
func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(Components()) + 2; len(entries) != want {
		t.Errorf("want %d entries in %s, got %v", want, dir, entries)
	}
}

func TestAPIServer(t *testing.T) {
	source, into := t.TempDir(), t.TempDir()
	files := smallSource()
	delete(files, "main.go")
	files["alone.go"] = "//go:build api_server_alone\n\npackage main\n\nfunc main() { print(\"alone\") }\n"
	files["whole.go"] = "//go:build !api_server_alone\n\npackage main\n\nfunc main() { print(\"whole\") }\n"
	write(t, source, files)
	options := Options{Source: source, Into: into}

	first, err := APIServer(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"etcd", "kube-apiserver"} {
		if said := runs(t, first, component); said != "alone" {
			t.Errorf("%s: want what is built without the rest, got %q", component, said)
		}
	}
	if _, err := Find(into, ""); err == nil {
		t.Error("want an API server alone not to count as a built Kubernetes")
	}

	var out bytes.Buffer
	options.Out = &out
	dir, err := Kubernetes(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if rest := (target{work: kubernetes().work - apiServerAlone().work}).estimate(runtime.NumCPU()); !strings.Contains(out.String(), rest) {
		t.Errorf("want to be told how long the rest takes, %s, got: %s", rest, &out)
	}
	if said := runs(t, dir, "kube-apiserver"); said != "whole" {
		t.Errorf("want all in one binary in the end, got %q", said)
	}
	noLeftovers(t, dir)
	if first, err = APIServer(t.Context(), options); err != nil || first != "" {
		t.Errorf("want nothing to be built where all is there, got %q and %v", first, err)
	}
}

func TestKubectl(t *testing.T) {
	source, into := t.TempDir(), t.TempDir()
	files := smallSource()
	files["kubectl/main.go"] = "package main\n\nfunc main() { print(\"kubectl\") }\n"
	write(t, source, files)
	dir, err := Kubernetes(t.Context(), Options{Source: source, Into: into})
	if err != nil {
		t.Fatal(err)
	}
	noLeftovers(t, dir)

	path, err := Kubectl(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if said := runs(t, dir, filepath.Base(path)); said != "kubectl" {
		t.Errorf("want it to run, got %q", said)
	}

	if err := os.RemoveAll(source); err != nil {
		t.Fatal(err)
	}
	if again, err := Kubectl(t.Context(), dir, nil); err != nil || again != path {
		t.Errorf("want what was built to be taken where there is no source any more, got %q and %v", again, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Kubectl(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "no kubectl was built in "+dir) {
		t.Errorf("want to be told that there is none, got: %v", err)
	}
}
