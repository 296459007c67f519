package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	_ "github.com/deletion-conformance/deletion-conformance/suites" // the catalog
)

const implementationFile = "organization: Example\nproject: example-kubernetes\nversion: 1.4.0\nurl: https://kubernetes.example.com\n" +
	"contact: [conformance@example.com]\nreproduce: runner --kubeconfig FILE --slow\n"

// executed runs a command, and returns its output and its error.
func executed(args ...string) (string, error) {
	out := &bytes.Buffer{}
	command := NewCommand(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out})
	command.SetArgs(args)
	err := command.Execute()
	return out.String(), err
}

// claimInput returns a directory with the report of a run, and a file about an implementation. The report has all behaviors of this runner:
// 16 as a real run recorded them, and the others skipped.
func claimInput(t *testing.T) (dir, implementation string) {
	t.Helper()
	g := NewWithT(t)
	whole, err := report.Read(filepath.Join("..", "claim", "claimtest", reportName))
	g.Expect(err).NotTo(HaveOccurred())
	recorded := map[string]v1alpha1.Result{}
	for _, result := range whole.Clusters[0].Results {
		recorded[result.ID] = result
	}
	known, err := catalog()
	g.Expect(err).NotTo(HaveOccurred())
	whole.Clusters[0].Results, whole.Clusters[0].Figures = nil, nil
	for _, behavior := range known {
		result, ok := recorded[behavior.ID]
		if !ok {
			result = v1alpha1.Result{Outcome: v1alpha1.Skipped, Reason: "not a part of this test", Start: whole.Start}
		}
		result.Behavior = behavior
		whole.Clusters[0].Results = append(whole.Clusters[0].Results, result)
	}
	var content bytes.Buffer
	g.Expect(report.WriteJSON(&content, report.Concluded(figures.Measure(whole)))).To(Succeed())
	dir = t.TempDir()
	implementation = filepath.Join(dir, "implementation.yaml")
	g.Expect(os.WriteFile(filepath.Join(dir, reportName), content.Bytes(), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(implementation, []byte(implementationFile), 0o600)).To(Succeed())
	return dir, implementation
}

func TestClaim(t *testing.T) {
	g := NewWithT(t)
	dir, implementation := claimInput(t)
	file := filepath.Join(dir, "claim.json")

	out, err := executed("claim", "--report", dir, "--implementation", implementation, "--output-file", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(file + ": example-kubernetes 1.4.0, Kubernetes v1.37.2\n  api: partial: 8 passed, 0 failed, 0 deviated, "))
	g.Expect(out).To(ContainSubstring("  operator: not claimed: no behavior was tested ("))

	for _, path := range []string{file, dir} { // the directory has a report, too
		out, err = executed("verify", path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(HavePrefix(file+": verified: example-kubernetes 1.4.0, Kubernetes v1.37.2\n  api: partial: "), HaveSuffix(notVerified+"\n")))
	}
	out, err = executed("verify", file, "--output", "json")
	g.Expect(err).NotTo(HaveOccurred())
	var results []verified
	g.Expect(json.Unmarshal([]byte(out), &results)).To(Succeed())
	g.Expect(results).To(HaveLen(1))
	g.Expect(results[0].Verified).To(BeTrue())
	g.Expect(results[0].NotVerified).To(Equal(notVerified))
	g.Expect(results[0].Profiles).NotTo(BeEmpty())

	pages := filepath.Join(dir, "site")
	for range 2 { // the second time, the site and its copy of the claim exist
		out, err = executed("site", dir, "--output-dir", pages)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal(pages + ": 1 claims\n"))
	}
	g.Expect(filepath.Join(pages, "index.html")).To(BeARegularFile())

	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	forged := filepath.Join(dir, "forged.json")
	g.Expect(os.WriteFile(forged, []byte(strings.Replace(string(content), `"conclusion": "partial"`, `"conclusion": "passed"`, 1)), 0o600)).To(Succeed())
	out, err = executed("verify", dir)
	g.Expect(err).To(MatchError("1 of 3 claims do not hold"))
	g.Expect(codeOf(err)).To(Equal(ExitFailed))
	g.Expect(out).To(ContainSubstring(forged + ": does not hold: example-kubernetes 1.4.0, Kubernetes v1.37.2\n" +
		`  profiles[api].conclusion: the claim states "passed", and the report shows "partial"`))
	out, err = executed("verify", forged)
	g.Expect(err).To(MatchError("the claim does not hold"))
	g.Expect(out).NotTo(ContainSubstring(notVerified))
}

func TestClaims_OneBadClaimBlocksNoOther(t *testing.T) {
	g := NewWithT(t)
	dir, implementation := claimInput(t)
	file, pages := filepath.Join(dir, "claim.json"), filepath.Join(dir, "site")
	_, err := executed("claim", "--report", dir, "--implementation", implementation, "--output-file", file)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	bad := func(name string, content string) {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	bad("bad-name.json", strings.Replace(string(content), `"example-kubernetes"`, `"`+strings.Repeat("x", 300)+`"`, 1))
	bad("bad-field.json", strings.Replace(string(content), `"implementation"`, `"certified": true, "implementation"`, 1))
	bad("bad-json.json", string(content[:1000]))
	bad("bad-size.json", string(content)+strings.Repeat(" ", 4<<20))
	bad("other.json", `{"kind": "List"}`)
	g.Expect(os.Symlink("/dev/zero", filepath.Join(dir, "bad-link.json"))).To(Succeed())
	g.Expect(os.Symlink(file, filepath.Join(dir, "bad-other-link.json"))).To(Succeed())

	reasons := And(
		ContainSubstring("  implementation: project is longer than 80 characters"),
		ContainSubstring("  claim: unknown field \"certified\""),
		ContainSubstring("bad-json.json: not a claim.json, or not all of one"),
		ContainSubstring("bad-size.json: larger than 4 MiB"),
		ContainSubstring("bad-link.json: not a regular file"),
		ContainSubstring("bad-other-link.json: not a regular file"),
	)
	out, err := executed("verify", dir)
	g.Expect(err).To(MatchError("6 of 7 claims do not hold"))
	g.Expect(codeOf(err)).To(Equal(ExitFailed))
	g.Expect(out).To(And(reasons, ContainSubstring(file+": verified: ")))

	out, err = executed("site", dir, "--output-dir", pages)
	g.Expect(err).To(MatchError("6 of 7 claims do not hold and were left out of the site"))
	g.Expect(codeOf(err)).To(Equal(ExitFailed))
	g.Expect(out).To(And(reasons, ContainSubstring(pages+": 1 claims\n"), Not(ContainSubstring("other.json"))))
	g.Expect(filepath.Join(pages, "index.html")).To(BeARegularFile())
	copies, err := filepath.Glob(filepath.Join(pages, "claims", "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copies).To(HaveLen(1))
	g.Expect(os.ReadFile(copies[0])).To(Equal(content), "signatures of the file hold for its copy")

	g.Expect(os.RemoveAll(pages)).To(Succeed())
	_, err = executed("site", filepath.Join(dir, "bad-field.json"), "--output-dir", pages)
	g.Expect(err).To(MatchError("the claim does not hold"))
	g.Expect(pages).NotTo(BeADirectory())
}

func TestVerify_ModifiedRunner(t *testing.T) {
	g := NewWithT(t)
	dir, implementation := claimInput(t)
	report, file := filepath.Join(dir, reportName), filepath.Join(dir, "claim.json")
	content, err := os.ReadFile(report)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(report, []byte(strings.Replace(string(content), `"runner": "00191b7"`, `"runner": "00191b7-dirty"`, 1)), 0o600)).To(Succeed())
	_, err = executed("claim", "--report", dir, "--implementation", implementation, "--output-file", file)
	g.Expect(err).NotTo(HaveOccurred())
	out, err := executed("verify", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("\n  the runner contains uncommitted changes, so no one else has it: 00191b7-dirty\n"))
}

func TestClaims_InvalidInput(t *testing.T) {
	dir, implementation := claimInput(t)
	report := filepath.Join(dir, reportName)
	empty, incomplete := t.TempDir(), filepath.Join(dir, "incomplete.yaml")
	interrupted := filepath.Join(dir, "interrupted.json")
	g := NewWithT(t)
	content, err := os.ReadFile(report)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(interrupted, []byte(strings.Replace(string(content), `"start"`, `"interrupted": true, "start"`, 1)), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(incomplete, []byte("project: example"), 0o600)).To(Succeed())
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"claim"}, "--report is required"},
		{[]string{"claim", "--report", dir}, "--implementation is required"},
		{[]string{"claim", "--report", "", "--implementation", implementation}, "--report must not be empty"},
		{[]string{"claim", "--report", empty, "--implementation", implementation}, "read report: open " + filepath.Join(empty, reportName) + ": no such file"},
		{[]string{"claim", "--report", implementation, "--implementation", implementation}, "not a report.json"},
		{[]string{"claim", "--report", dir, "--implementation", report}, "unknown field"},
		{[]string{"claim", "--report", dir, "--implementation", incomplete}, "organization is missing"},
		{[]string{"claim", "--report", dir, "--implementation", implementation, "--profile", "apis"}, `--profile "apis": must be api, controllers, node, admission, kubectl or operator; did you mean "api"?`},
		{[]string{"claim", "--report", dir, "--implementation", implementation, "--profile", "operator"}, "the profile operator cannot be claimed: no behavior was tested"},
		{[]string{"claim", "--report", dir, "--implementation", implementation, "--cluster", "other"}, `the report has no cluster "other"`},
		{[]string{"claim", "--report", dir + "," + report, "--implementation", implementation}, "both ran"},
		{[]string{"claim", "--report", interrupted, "--implementation", implementation}, "a claim would not hold: run: it was interrupted"},
		{[]string{"claim", "--report", dir, "--implementation", implementation, "--output-file", dir}, "write the claim with --output-file: " + dir + " is a directory"},
		{[]string{"claim", "out"}, `unknown command or argument "out"`},
		{[]string{"verify"}, "requires claims, or directories of claims"},
		{[]string{"verify", filepath.Join(dir, "missing")}, "read claims: stat "},
		{[]string{"verify", empty}, "read claims: " + empty + " has none"},
		{[]string{"verify", report}, `not a claim of this project: kind is "DeletionConformanceReport"`},
		{[]string{"site"}, "requires claims, or directories of claims"},
		{[]string{"site", empty}, "read claims: " + empty + " has none"},
		{[]string{"site", report}, "not a claim of this project"},
		{[]string{"verify", report, "--output", "yaml"}, `--output "yaml": must be text or json`},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			g := NewWithT(t)
			_, err := executed(test.args...)
			g.Expect(err).To(MatchError(And(ContainSubstring(test.want), Not(ContainSubstring("\n")))))
			g.Expect(codeOf(err)).To(Equal(ExitUsage))
		})
	}
}
