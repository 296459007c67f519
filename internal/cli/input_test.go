package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// ended is how a command ends: its exit code, what it printed, and the text of its error.
func ended(t *testing.T, arguments ...string) (code int, out, failed string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	printed := &bytes.Buffer{}
	command := NewCommand(genericiooptions.IOStreams{Out: printed, ErrOut: printed})
	command.SetArgs(arguments)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		failed = err.Error()
	}
	return codeOf(err), printed.String(), failed
}

func TestFlags_Empty(t *testing.T) {
	tested := 0
	each(NewCommand(genericiooptions.IOStreams{}), func(command *cobra.Command) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !slices.Contains(texts, flag.Value.Type()) || flag.Name == "label-filter" {
				return
			}
			tested++
			path := strings.Fields(command.CommandPath())[1:]
			code, _, failed := ended(t, append(path, "--"+flag.Name, "")...)
			g := NewWithT(t)
			g.Expect(code).To(Equal(ExitUsage), failed)
			g.Expect(failed).To(HavePrefix("--" + flag.Name + " must not be empty (see `runner"))
		})
	})
	NewWithT(t).Expect(tested).To(BeNumerically(">", 60))
}

func TestFlags_SeveralValues(t *testing.T) {
	g := NewWithT(t)
	flags := newRunFlags(genericiooptions.IOStreams{})
	command := &cobra.Command{}
	addGroups(command, flags.addTo, flags.addBehaviorsTo)
	refuseEmpty(command)
	g.Expect(command.Flags().Parse([]string{"--suite", "a,b", "--suite", "c", "--label", "x=1", "--label", "y=2"})).To(Succeed())
	g.Expect(flags.options.Selection.Suites).To(Equal([]string{"a", "b", "c"}))
	g.Expect(flags.policies.labels).To(Equal([]string{"x=1", "y=2"}))
	g.Expect(command.Flags().FlagUsages()).NotTo(ContainSubstring("(default [])"))
}

func TestInvalidInput(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments []string
		want      string
	}{
		{"a flag with a typing mistake", []string{"--kubeconfg", "f"}, "unknown flag: --kubeconfg; did you mean \"--kubeconfig\"? (see `runner --help`)"},
		{"a flag of another command", []string{"list", "--strict"}, "unknown flag: --strict (see `runner list --help`)"},
		{"a command with a typing mistake", []string{"clenup"}, "unknown command or argument \"clenup\"; did you mean \"cleanup\"? (see `runner --help`)"},
		{"a subcommand with a typing mistake", []string{"cluster", "biuld"}, `did you mean "build"?`},
		{"a provider with a typing mistake", []string{"--provider", "embdeded"}, `did you mean "embedded"?`},
		{"nodes with a typing mistake", []string{"--provider", "embedded", "--nodes", "aut"}, `--nodes "aut": must be auto, 0, 1 or 2; did you mean "auto"?`},
		{"too many nodes of a cluster", []string{"cluster", "up", "--without-controllers", "--nodes", "three"}, `--nodes "three": must be auto, 0, 1 or 2`},
		{"a format of a list with a typing mistake", []string{"list", "--output", "jsn"}, `--output "jsn": must be table, json or markdown; did you mean "json"?`},
		{"an unknown format of the preflight", []string{"preflight", "--output", "yaml"}, `--output "yaml": must be table or json`},
		{"no resource of a fixture", []string{"fixture", ""}, "requires one resource"},
		{"a kubeconfig that exists already", []string{"cluster", "up", "--write-kubeconfig", "input_test.go"}, "--write-kubeconfig input_test.go: the file exists"},
		{"a format of a comparison with a typing mistake", []string{"compare", "a", "b", "--output", "txt"}, `--output "txt": must be text, json or markdown; did you mean "text"?`},
		{"a format of a history with a typing mistake", []string{"compare", "a", "b", "c", "--output", "makrdown"}, `--output "makrdown": must be text, json or markdown; did you mean "markdown"?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, _, failed := ended(t, test.arguments...)
			g.Expect(code).To(Equal(ExitUsage))
			g.Expect(failed).To(ContainSubstring(test.want))
			g.Expect(failed).NotTo(ContainSubstring("\n"), "one line")
		})
	}
}

// reportFile writes a report to a file.
func reportFile(t *testing.T, name string, whole v1alpha1.Report) string {
	t.Helper()
	var content bytes.Buffer
	if err := report.WriteJSON(&content, whole); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReports_Mismatched(t *testing.T) {
	a, b := reporttest.Ran("x.a", "a", v1alpha1.Passed), reporttest.Ran("x.b", "b", v1alpha1.Passed)
	lost := reporttest.Unstarted("x.b", "b", v1alpha1.Filtered)
	whole := reportFile(t, "whole.json", reporttest.Run("one", 0, reporttest.OnCluster("c", a, b)))
	part := reportFile(t, "part.json", reporttest.Run("two", 0, reporttest.OnCluster("c", a, lost)))
	other := reportFile(t, "other.json", reporttest.Run("three", 0, reporttest.OnCluster("d", a)))
	several := reporttest.Run("four", 0, reporttest.OnCluster("e", a))
	several.Clusters = append(several.Clusters, reporttest.OnCluster("f", a))
	disjoint := reportFile(t, "disjoint.json", several)
	later := reportFile(t, "later.json", reporttest.Run("five", time.Hour, reporttest.OnCluster("c", a, lost)))
	worse := reportFile(t, "worse.json", reporttest.Run("six", 2*time.Hour, reporttest.OnCluster("c", reporttest.Ran("x.a", "a", v1alpha1.Failed), lost)))
	for _, test := range []struct {
		name      string
		arguments []string
		code      int
		out, want string
	}{
		{"lost results", []string{"compare", whole, part}, ExitPassed, "Nothing regressed. No longer tested: 1 behavior.", ""},
		{"lost results that are to fail", []string{"compare", "--fail-on-lost", whole, part}, ExitFailed, "1: " + whole, "results were lost (--fail-on-lost)"},
		{"nothing lost", []string{"compare", "--fail-on-lost", whole, whole}, ExitPassed, "Nothing changed.", ""},
		{"no cluster in common", []string{"compare", whole, disjoint}, ExitUsage, "", "have a cluster in common (e, f, c): compare reports of the same clusters"},
		{"a history", []string{"compare", whole, later, part}, ExitPassed, "No longer tested (1)\n  x.b on c: not tested since report 2", ""},
		{"a history of lost results", []string{"compare", whole, part, later, "--fail-on-lost", "-o", "markdown"}, ExitFailed, "| <code>x.b</code> | <code>c</code> |", "results were lost (--fail-on-lost)"},
		{"a history with a regression", []string{"compare", whole, part, worse, "-o", "json"}, ExitFailed, `"regressed": true`, "behaviors regressed"},
		{"a history of one run", []string{"compare", whole, part, whole}, ExitUsage, "", whole + " and " + whole + " are the same run"},
		{"other catalogs", []string{"merge", whole, other, "--report-dir", t.TempDir()}, ExitUsage, "", "their catalogs of behaviors differ: only " + whole + " has x.b"},
		{"a report that is a directory", []string{"report", t.TempDir()}, ExitUsage, "", "is a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, out, failed := ended(t, test.arguments...)
			g.Expect(code).To(Equal(test.code), failed)
			g.Expect(out).To(ContainSubstring(test.out))
			g.Expect(failed).To(ContainSubstring(test.want))
		})
	}
}

func TestFixture_NoManifest(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "widget.yaml")
	code, _, _ := ended(t, "fixture", "--server", "http://127.0.0.1:1", "widgets.example.com/v1", "--output-file", file)
	g.Expect(code).To(Equal(ExitUntested))
	g.Expect(file).NotTo(BeAnExistingFile())

	flags := fixtureFlags{file: t.TempDir()}
	g.Expect(flags.write(&unstructured.Unstructured{}, &redact.Redactor{})).To(MatchError(HaveSuffix("is a directory")))
	flags.file = file
	g.Expect(flags.write(&unstructured.Unstructured{Object: map[string]any{"kind": "Widget"}}, &redact.Redactor{})).To(Succeed())
	g.Expect(os.ReadFile(file)).To(BeEquivalentTo("kind: Widget\n"))
}

func TestStopped_CleanupCommand(t *testing.T) {
	g := NewWithT(t)
	noted := &atomic.Value{}
	ctx := t.Context()
	noteCleanup(ctx, "a command of another program") // which cannot be stopped
	g.Expect(stopped(noted)).To(Equal("stopped"))
	noted.Store("runner cleanup --run dc1\nrunner cleanup --run dc1 --context b")
	g.Expect(stopped(noted)).To(Equal("stopped without cleaning up; clean up with:\n  runner cleanup --run dc1\n  runner cleanup --run dc1 --context b"))
}
