package build

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

func TestEstimate(t *testing.T) {
	for cores, want := range map[int]string{1: "12 min on 1 core(s)", 2: "6 min on 2 core(s)", 64: "1 min on 64 core(s)"} {
		if said := kubernetes().estimate(cores); said != want {
			t.Errorf("want %q, got %q", want, said)
		}
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	progress := startProgress(&out, kubernetes(), version.MustParseSemantic("1.36.3"), "example.com/kubernetes")
	lines := &lineWriter{each: progress.line}
	for _, chunk := range []string{"go: downloading k8s.io/api v0.36.3\ngo: down", "loading k8s.io/utils v0.1.0\n"} {
		if _, err := lines.Write([]byte(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	if stage := progress.stage(); stage != "2 modules fetched" {
		t.Errorf("while modules are fetched: %q", stage)
	}
	progress.expect(12)
	if _, err := lines.Write([]byte("internal/abi\nk8s.io/api/core/v1\n# k8s.io/broken\nx.go:1:2: undefined: y")); err != nil {
		t.Fatal(err)
	}
	lines.flush()
	if stage := progress.stage(); stage != "2 of at most 12 packages compiled" {
		t.Errorf("while packages are compiled: %q", stage)
	}
	progress.line("example.com/kubernetes")
	if stage := progress.stage(); stage != "linking, after 3 packages were compiled" {
		t.Errorf("while it is linked: %q", stage)
	}
	if lines := progress.tail(); lines != "# k8s.io/broken\nx.go:1:2: undefined: y" {
		t.Errorf("the last lines of a build that failed: %q", lines)
	}
	progress.Print()
	progress.stop(false)
	if !strings.Contains(out.String(), "still building: linking, after 3 packages were compiled, 0s so far\n") {
		t.Errorf("want a line that says that it is alive, got: %s", &out)
	}
}
