package kind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

func configFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(file, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"+content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestNew_Options(t *testing.T) {
	workers := configFile(t, "name: mine\nnodes: [{role: control-plane}, {role: worker, image: other:1}]\n")
	for _, test := range []struct {
		what    string
		options []Option
		name    string
		images  []string
	}{
		{"nothing", nil, "deletion-conformance", []string{defaults.Image}},
		{"a configuration", []Option{WithConfig(workers)}, "mine", []string{defaults.Image, "other:1"}},
		{"a name over a configuration", []Option{WithConfig(workers), WithName("yours")}, "yours", []string{defaults.Image, "other:1"}},
		{"an image over a configuration", []Option{WithConfig(workers), WithImage("one:2")}, "mine", []string{"one:2", "one:2"}},
	} {
		kind, err := New(test.options...)
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		var images []string
		for _, node := range kind.config.Nodes {
			images = append(images, node.Image)
		}
		if kind.Name() != test.name || strings.Join(images, " ") != strings.Join(test.images, " ") {
			t.Errorf("%s: want %s of %v, got %s of %v", test.what, test.name, test.images, kind.Name(), images)
		}
	}
}

func TestNew_StrictConfig(t *testing.T) {
	_, err := New(WithConfig(configFile(t, "nodes:\n- rol: worker\n")))
	if err == nil || !strings.Contains(err.Error(), "rol") || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line on the field that does not exist, got: %v", err)
	}
}

func TestVia(t *testing.T) {
	for route, want := range map[string]string{
		"default via 172.18.0.1 dev eth0":                   "172.18.0.1",
		"default via fc00:f853:ccd::1 dev eth0 metric 1024": "fc00:f853:ccd::1",
		"default dev eth0 scope link":                       "",
		"default via fe80::1 dev eth0":                      "",
		"default via nobody":                                "",
	} {
		if gateway, ok := via(route); ok != (want != "") || ok && gateway != want {
			t.Errorf("%s: want %q, got %q", route, want, gateway)
		}
	}
}

func TestReasonOf(t *testing.T) {
	failed := &kindexec.RunError{Command: []string{"docker", "run", "--privileged"}, Inner: errors.New("exit status 125"), Output: []byte(
		"some progress\ndocker: Error response from daemon: no such runtime.\n\nRun 'docker run --help' for more information\n")}
	if got, want := reasonOf(failed).Error(), "docker: Error response from daemon: no such runtime."; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if got := reasonOf(errors.New("two\nlines")).Error(); got != "two lines" {
		t.Errorf("want one line, got %q", got)
	}
}

func TestProgressLines(t *testing.T) {
	var out strings.Builder
	lines := progressLines{&out}
	lines.V(0).Infof(" • %s  ...\n", "Preparing nodes 📦 📦 ")
	lines.V(0).Infof(" ✓ %s\n", "Preparing nodes 📦 📦 ")
	lines.V(1).Info("not for users")
	lines.Warn("cgroup v1 is deprecated")
	if want := "kind: preparing nodes\nkind: cgroup v1 is deprecated\n"; out.String() != want {
		t.Errorf("want %q, got %q", want, out.String())
	}
}
