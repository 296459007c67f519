package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/cli"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	_ "github.com/deletion-conformance/deletion-conformance/suites"
)

// hostile acts in terminals and in the logs of CI systems, unless it is escaped.
const hostile = "no\x1b]0;title\a\x1b[2J\u009b31m\u202e\x00\x7f\n::add-mask::a\r\n \u00a0::add-mask::b\r::add-mask::c\u2028::add-mask::d " +
	"##[add-mask]e ###[add-mask]f##vso[add-mask]g\n##teamcity[add-mask]h\n\t::stop-commands::i\n##[group]j\nthe end of it"

// acts matches commands that are not escaped.
var acts = regexp.MustCompile(`(?m)^[\pZ\s]*::(?:add-mask|stop-commands::i)|##\w*\[(?:add-mask|group)`)

// checkHarmless checks that a text contains the hostile one, and that nothing of that acts.
func checkHarmless(t *testing.T, where, text string) {
	t.Helper()
	unseen := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) })
	if unseen >= 0 || acts.MatchString(text) || strings.ToValidUTF8(text, "") != text {
		t.Errorf("%s: %q acts", where, text)
	}
	if !strings.Contains(text, "add-mask") {
		t.Errorf("%s: the text is not in %q", where, text)
	}
}

// ran runs the command line, and returns what it prints to both streams.
func ran(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	cli.Main(args, strings.NewReader(""), &out, &errOut)
	return out.String() + "\n" + errOut.String()
}

// discovery is what everyone may read from a server that refuses the rest.
var discovery = map[string]string{
	"/version":       `{"gitVersion": "v1.36.3"}`,
	"/api":           `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis":          `{"kind": "APIGroupList", "groups": [{"name": "batch", "versions": [{"groupVersion": "batch/v1", "version": "v1"}]}]}`,
	"/api/v1":        `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "namespaces", "kind": "Namespace", "verbs": ["create"]}]}`,
	"/apis/batch/v1": `{"kind": "APIResourceList", "groupVersion": "batch/v1", "resources": [{"name": "jobs", "kind": "Job", "namespaced": true, "verbs": ["create"]}]}`,
}

// refusing returns a kubeconfig of a server that refuses everything in hostile words. With 403 it permits discovery.
func refusing(t *testing.T, code int, reason metav1.StatusReason) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if found := discovery[request.URL.Path]; code == http.StatusForbidden && found != "" {
			_, _ = io.WriteString(writer, found)
			return
		}
		writer.WriteHeader(code)
		_ = json.NewEncoder(writer).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: hostile, Reason: reason, Code: int32(code),
		})
	}))
	t.Cleanup(server.Close)
	return written(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: there, clusters: [{name: there, cluster: {server: %q}}],
  contexts: [{name: there, context: {cluster: there, user: me}}], users: [{name: me, user: {token: hunter2}}]}`, server.URL))
}

func written(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMain_HostileServer(t *testing.T) {
	for code, reason := range map[int]metav1.StatusReason{
		http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	} {
		for name, args := range map[string][]string{
			"run":            {"--suite", "finalizers", "--quiet"},
			"explore":        {"explore", "--for", "1s"},
			"preflight":      {"preflight", "--suite", "finalizers"},
			"preflight/json": {"preflight", "--suite", "finalizers", "--output", "json"},
			"cleanup":        {"cleanup"},
			"collect":        {"collect", "--job", "a"},
			"fixture":        {"fixture", "jobs"},
		} {
			if name == "fixture" && code == http.StatusForbidden {
				continue // client-go does not quote why the schema cannot be read
			}
			t.Run(fmt.Sprintf("%s/%d", name, code), func(t *testing.T) {
				checkHarmless(t, name, ran(t, append(args, "--kubeconfig", refusing(t, code, reason))...))
			})
		}
	}
}

// hostileReports returns the files of three runs, of which the last failed.
func hostileReports(t *testing.T) (files []string) {
	t.Helper()
	for i := range 3 {
		whole := reporttest.WithText(hostile)
		whole.Clusters[0].Problem, whole.RunID, whole.Runner = "", fmt.Sprint("run", i), strings.Repeat(hostile, i)
		if i == 2 {
			whole.Clusters[0].Problem = hostile
			for j := range whole.Clusters[0].Results {
				whole.Clusters[0].Results[j].Outcome = v1alpha1.Failed
			}
		}
		var encoded bytes.Buffer
		NewWithT(t).Expect(report.WriteJSON(&encoded, whole)).To(Succeed())
		files = append(files, written(t, "report.json", encoded.String()))
	}
	return files
}

func TestMain_HostileReport(t *testing.T) {
	files, dir := hostileReports(t), t.TempDir()
	one, two, three := files[0], files[1], files[2]
	kind, err := json.Marshal(map[string]any{"kind": hostile})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	invalid := written(t, "invalid.json", string(kind))
	claim, err := json.Marshal(v1alpha1.ConformanceReport{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ClaimKind, Profiles: []v1alpha1.ProfileResult{{Profile: hostile}},
		Implementation: v1alpha1.Implementation{Project: hostile, Version: hostile},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	claimed := written(t, "claim.json", string(claim))

	for _, args := range [][]string{
		{"merge", one, two, "--report-dir", dir},
		{"compare", one, three},
		{"compare", one, three, "--output", "json"},
		{"compare", one, two, three},
		{"compare", one, two, three, "--output", "markdown"},
		{"report", three, "--report-dir", dir},
		{"verify", claimed},
		{"verify", claimed, "--output", "json"},
		{"site", claimed, "--output-dir", dir},
	} {
		checkHarmless(t, strings.Join(args, " "), ran(t, args...))
	}
	for _, command := range []string{"merge", "compare", "report"} {
		printed := ran(t, command, invalid, invalid)
		NewWithT(t).Expect(acts.FindString(printed)).To(BeEmpty(), command)
	}
	for _, form := range []string{"junit.xml", "report.json", "ctrf.json", "report.html", "summary.md"} {
		content, err := os.ReadFile(filepath.Join(dir, form))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		checkHarmless(t, form, string(content))
	}
	read, err := report.Read(filepath.Join(dir, "report.json"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(read.Clusters[0].Results[0].Failure.Message).To(Equal(hostile), "as it was received")
}

func TestMain_StopsCommandsOnGitHub(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	var encoded bytes.Buffer
	NewWithT(t).Expect(report.WriteJSON(&encoded, reporttest.Sample())).To(Succeed())
	file := written(t, "report.json", encoded.String())
	NewWithT(t).Expect(ran(t, "report", file, "--report-dir", t.TempDir())).To(MatchRegexp(`(?s)\A::stop-commands::(\w+)\n.*\n::\w+::\n\n\z`))
	NewWithT(t).Expect(ran(t, "compare", file, file, "--output", "json")).To(HavePrefix("{"), "programs read it")
	NewWithT(t).Expect(ran(t, "version")).To(HavePrefix("runner "), "programs read it")
	NewWithT(t).Expect(ran(t, "unknown")).To(MatchRegexp(`(?s)\A\n::stop-commands::(\w+)\nrunner: .*\n::\w+::\n\z`))
}
