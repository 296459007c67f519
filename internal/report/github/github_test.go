package github_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/github"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// published returns what was published of a report: the summary, and the outputs.
func published(t *testing.T, r v1alpha1.Report) (summary, outputs string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary"), "GITHUB_OUTPUT": filepath.Join(dir, "output")}
	for variable, file := range files {
		t.Setenv(variable, file)
		if err := os.WriteFile(file, []byte("of a step before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := github.Publish(r); err != nil {
		t.Fatal(err)
	}
	read := func(variable string) string {
		content, err := os.ReadFile(files[variable])
		if err != nil {
			t.Fatal(err)
		}
		added, found := strings.CutPrefix(string(content), "of a step before\n")
		if !found {
			t.Errorf("%s: what was there before is gone: %s", variable, content)
		}
		return added
	}
	return read("GITHUB_STEP_SUMMARY"), read("GITHUB_OUTPUT")
}

func TestPublish_NotOnGitHub(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GITHUB_ACTIONS", "")
	summary, outputs := published(t, reporttest.Sample())
	g.Expect(summary + outputs).To(BeEmpty())
}

func TestPublish_Outputs(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GITHUB_ACTIONS", "true")
	for _, text := range reporttest.Hostile {
		_, outputs := published(t, reporttest.WithText(text))
		g.Expect(outputs).To(MatchRegexp(`^verdict=[a-z ]+\nscope=[a-z0-9 ]*\nkubectl=[a-z ]*\npassed=\d+\nfailed=\d+\noutdated-known=\d+\nknown=\d+\ndeviated=\d+\nerrored=\d+\ninterrupted=\d+\nskipped=\d+\nnot-selected=\d+\n$`))
	}
}

func TestPublish_Summary(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GITHUB_ACTIONS", "true")
	summary, outputs := published(t, reporttest.Sample())
	g.Expect(summary).To(ContainSubstring("not conformant"))
	g.Expect(outputs).To(HavePrefix("verdict=not conformant\nscope=\nkubectl=\n"))
}
