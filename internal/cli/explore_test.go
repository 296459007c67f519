package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestExplore_InvalidInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const header = `{"kind": "DeletionConformanceHistory", "apiVersion": "deletion-conformance.github.io/v1alpha1", "programs": `
	for _, test := range []struct {
		message   string
		arguments []string
	}{
		{"--for must be greater than zero", []string{"--for", "0s"}},
		{"--clients must be between 1 and 32", []string{"--clients", "0"}},
		{"--clients must be between 1 and 32", []string{"--clients", "33"}},
		{`unknown scenario "pods"; choose from [objects ownership grace nodes namespaces workloads operator]`, []string{"--scenario", "pods"}},
		{"--resource pods: pods are deleted gracefully", []string{"--resource", "pods"}},
		{"--resource: scenario grace is about pods", []string{"--resource", "leases", "--scenario", "grace"}},
		{`--inject: unknown fault "refuze"; choose from [all refuse delay conflict restart watch-end namespace]; did you mean "refuse"?`, []string{"--inject", "refuze"}},
		{"--inject: scenario grace does not permit the fault namespace", []string{"--inject", "all,namespace", "--scenario", "grace"}},
		{"--scenario operator requires --resource: ", []string{"--scenario", "operator"}},
		{"--scenario operator and --namespace are mutually exclusive", []string{"--scenario", "operator", "--resource", "leases", "--namespace", "n"}},
		{"--controller requires --scenario operator: scenario objects is about the API server", []string{"--resource", "leases", "--controller", "deploy/a"}},
		{"--controller-namespace requires --scenario operator", []string{"--resource", "leases", "--controller-namespace", "a"}},
		{"unknown flag: --no-create", []string{"--no-create"}},
		{"unknown flag: --all-resources", []string{"--all-resources"}},
		{"--replay: open ", []string{"--replay", filepath.Join(dir, "none.json")}},
		{"is not a replay file from `runner explore`", []string{"--replay", file("report.json", `{"kind": "Report"}`)}},
		{`has version "v9"`, []string{"--replay", file("new.json", `{"kind": "DeletionConformanceHistory", "apiVersion": "v9"}`)}},
		{"must have between 1 and 32 programs", []string{"--replay", file("empty.json", header+`[]}`)}},
		{`"fly" of object 0 is no operation`, []string{"--replay", file("fly.json", header+`[[{"verb": "fly"}]]}`)}},
		{`"get" of object 3 is no operation`, []string{"--replay", file("far.json", header+`[[{"verb": "get", "object": 3}]]}`)}},
		{`has the unknown scenario "pods"`, []string{"--replay", file("pods.json", header+`[[{"verb": "get"}]], "scenario": "pods"}`)}},
		{"unknown flag: --suite", []string{"--suite", "cascade"}},
		{"no cluster specified", nil},
	} {
		t.Run(test.message, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", "")
			command := NewCommand(genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
			command.SetArgs(append([]string{"explore"}, test.arguments...))
			err := command.ExecuteContext(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
			g.Expect(codeOf(err)).To(Equal(ExitUsage))
		})
	}
}
