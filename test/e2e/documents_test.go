package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// documents are the pages with commands, in reading order.
var documents = []string{
	"README.md", "docs/clusters.md", "docs/preflight.md", "docs/policies.md", "docs/resources.md", "docs/controllers.md", "docs/ci.md",
	"docs/embedded.md", "docs/in-cluster.md", "docs/offline.md", "docs/reports.md", "docs/claims.md", "docs/troubleshooting.md",
}

var (
	// block matches a block of commands in a document.
	block = regexp.MustCompile("(?ms)^```(?:sh)?\n(.*?)^```")
	// chooses matches commands that select few behaviors themselves, or need no cluster.
	chooses = regexp.MustCompile(`--label-filter|--no-create|^runner (list|report|merge|compare|cleanup|preflight|fixture|cluster)`)
	// elsewhere matches commands that need something that is not available here (Docker, an operator, a terminal, another cluster, a
	// registry, an address): only their flags are checked, and other tests run them.
	elsewhere = regexp.MustCompile(`--provider |--controller |--webhook-(host|in-cluster) |--all-contexts|--context a|OTHER|^runner (cluster up|collect|claim|verify|site)`)
)

// few selects two behaviors, so that a documented command takes only seconds.
const few = ` --label-filter 'finalizers.held || finalizers.dry-run'`

func TestDocuments_Commands(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	c := shared.in(t)
	dir := documented(t, c)
	ran := 0
	for _, document := range documents {
		content, err := os.ReadFile(filepath.Join(root(t), document))
		if err != nil {
			t.Fatal(err)
		}
		for _, commands := range block.FindAllStringSubmatch(string(content), -1) {
			for command := range strings.Lines(commands[1]) {
				if command = strings.TrimSpace(command); strings.HasPrefix(command, "runner ") {
					runDocumented(t, dir, document, command)
					ran++
				}
			}
		}
	}
	NewWithT(t).Expect(ran).To(BeNumerically(">", 25), "documents have commands")
}

// runDocumented runs a command of a document in a directory with the files that it names.
func runDocumented(t *testing.T, dir, document, command string) {
	t.Helper()
	executed := command
	switch {
	case elsewhere.MatchString(command):
		executed += " --help"
	case !chooses.MatchString(command):
		executed += few
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", executed)
	shell.Dir = dir
	shell.Env = append(emptyEnvironment(t), "PATH="+filepath.Dir(built.runner)+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	t.Logf("%s: %s\n%s", document, executed, out)
	if err != nil {
		t.Errorf("%s: %s: %v", document, command, err)
	}
}

// documented creates a directory with the files that documents name, and their objects on the cluster.
func documented(t *testing.T, c *cluster) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	c.define(t, "documented.yaml")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sandbox"}}
	_, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.LoadFromFile(c.admin(t, "reader"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(clientcmd.WriteToFile(*config, filepath.Join(dir, "FILE"))).To(Succeed())

	// The earlier report in the documents is that of an earlier run.
	old := startRun(t, "--kubeconfig", filepath.Join(dir, "FILE"), "--label-filter", "finalizers.held || finalizers.dry-run").wait()
	g.Expect(old.code).To(Equal(0))
	content, err := os.ReadFile(filepath.Join(old.reports, "report.json"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, folder := range []string{"old", "out"} {
		g.Expect(os.Mkdir(filepath.Join(dir, folder), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, folder, "report.json"), content, 0o600)).To(Succeed())
	}
	for _, night := range []string{"1", "2", "3"} { // as of different runs
		folder := filepath.Join(dir, "nightly", night)
		g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		of := strings.ReplaceAll(string(content), old.report(t).RunID, "dcnight"+night)
		g.Expect(os.WriteFile(filepath.Join(folder, "report.json"), []byte(of), 0o600)).To(Succeed())
	}
	return dir
}

func TestDocuments_Links(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, page := range slices.Concat(pages, []string{filepath.Join(root(t), "README.md"), filepath.Join(root(t), "CONTRIBUTING.md")}) {
		content, err := os.ReadFile(page)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, target := range link.FindAllStringSubmatch(string(content), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", filepath.Base(page), target[1])
			}
		}
	}
}
