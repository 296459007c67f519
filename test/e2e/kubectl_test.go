package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
)

// builtKubectl is the kubectl of the Kubernetes in these tests. It is built on first use.
var builtKubectl = sync.OnceValues(func() (string, error) {
	if built.missing != nil {
		return "", built.missing
	}
	return binaries.Kubectl(context.Background(), built.kubernetes, os.Stderr)
})

func kubectl(t *testing.T) string {
	t.Helper()
	path, err := builtKubectl()
	if err != nil {
		t.Skip(err)
	}
	return path
}

// processPolling is longer than polling because each look reads the command lines of all processes.
const processPolling = 10 * polling

// commandLinesOf returns the command lines of processes that run a program.
func commandLinesOf(program string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		content, err := os.ReadFile(file) // fails for those that have ended meanwhile
		if line := string(bytes.ReplaceAll(content, []byte{0}, []byte{' '})); err == nil && strings.HasPrefix(line, program+" ") {
			found = append(found, line)
		}
	}
	return found
}

// private returns a copy of kubectl for one test.
func private(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	content, err := os.ReadFile(kubectl(t))
	if err == nil {
		err = os.WriteFile(path, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKubectl_Missing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	reports := filepath.Join(t.TempDir(), "reports")
	environment := append(emptyEnvironment(t), "PATH="+t.TempDir())

	ran := start(t, environment, "--kubeconfig", c.admin(t, "without-kubectl"), "--procs", "2", "--suite", "kubectl", "--report-dir", reports)
	ran.reports = reports
	ended := ran.wait()

	g.Expect(ended.code).To(Equal(3), "nothing was tested")
	skipped := reasons(ended.cluster(t), v1alpha1.Skipped)
	g.Expect(skipped).To(HaveKeyWithValue("kubectl.cascade",
		"kubectl is not in PATH: install it, or set --kubectl FILE"))
	g.Expect(len(skipped)).To(BeNumerically(">=", 16))
}

func TestKubectl_Version(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)

	ended := startRun(t, "--kubeconfig", c.admin(t, "with-kubectl"), "--kubectl", kubectl(t), "--label-filter", "kubectl.partial-failure").wait()

	g.Expect(ended.code).To(Equal(0))
	version := filepath.Base(built.kubernetes)
	g.Expect(ended.cluster(t).KubectlVersion).To(Equal(version))
	for _, form := range []string{"junit.xml", "summary.md", "report.html"} {
		content, err := os.ReadFile(filepath.Join(ended.reports, form))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(content)).To(MatchRegexp("kubectl.{0,40}"+version), form)
	}
}

func TestRun_BrokenKubectl(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	broken := filepath.Join(t.TempDir(), "kubectl")
	script := "#!/bin/bash\nexec " + kubectl(t) + ` "${@/#--cascade=orphan/--cascade=background}"` + "\n"
	g.Expect(os.WriteFile(broken, []byte(script), 0o755)).To(Succeed())

	ended := startRun(t, "--kubeconfig", c.admin(t, "broken-kubectl"), "--kubectl", broken, "--label-filter", "kubectl.cascade || finalizers.held").wait()

	g.Expect(ended.code).To(Equal(5))
	g.Expect(ended.out).To(And(ContainSubstring("\nconformant\n"),
		ContainSubstring("\nkubectl "+filepath.Base(built.kubernetes)+": not conformant: 1 behavior failed")))
	g.Expect(ended.report(t).Verdicts).To(HaveExactElements(
		And(HaveField("Subject", v1alpha1.SubjectCluster), HaveField("Conclusion", v1alpha1.Conformant)),
		And(HaveField("Subject", v1alpha1.SubjectKubectl), HaveField("Conclusion", v1alpha1.Nonconformant))))
}

func TestInterrupt_Kubectl(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := shared.in(t)
			program, temporary := private(t), t.TempDir()
			environment := append(emptyEnvironment(t), "TMPDIR="+temporary)

			ran := start(t, environment, "--kubeconfig", c.admin(t, "kubectl-"+name), "--kubectl", program, "--procs", "1",
				"--label-filter", "kubectl.drain-retries")
			drains := func() []string { return commandLinesOf(program + " drain") }
			g.Eventually(drains).WithTimeout(waitTimeout).WithPolling(processPolling).Should(HaveLen(2))
			g.Expect(strings.Join(drains(), "")).NotTo(ContainSubstring("token"))
			ran.signal(signal)
			ran.wait()

			g.Eventually(drains).WithTimeout(waitTimeout).WithPolling(processPolling).Should(BeEmpty())
			g.Eventually(func() ([]os.DirEntry, error) { return os.ReadDir(temporary) }).
				WithTimeout(waitTimeout).WithPolling(polling).Should(BeEmpty())
		})
	}
}

func TestCleanup_Files(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	environment := append(emptyEnvironment(t), "TMPDIR="+t.TempDir())
	program := private(t)
	drain := func(user string) *running {
		return start(t, environment, "--kubeconfig", c.admin(t, user), "--kubectl", program, "--procs", "1",
			"--label-filter", "kubectl.drain-retries")
	}
	drains := func() []string { return commandLinesOf(program + " drain") }
	killed := drain("kubectl-all-killed")
	g.Eventually(drains).WithTimeout(waitTimeout).WithPolling(processPolling).Should(HaveLen(2))
	killed.signal(syscall.SIGSTOP) // so that it cannot react to the end of its worker
	g.Eventually(killed.runningThreads).WithTimeout(waitTimeout).WithPolling(polling).Should(BeEmpty())
	for _, worker := range killed.workers() {
		g.Expect(syscall.Kill(-worker, syscall.SIGKILL)).To(Succeed())
	}
	killed.signal(syscall.SIGKILL)
	killed.wait()
	g.Eventually(drains).WithTimeout(waitTimeout).WithPolling(processPolling).Should(BeEmpty())
	alive := drain("kubectl-alive")
	g.Eventually(drains).WithTimeout(waitTimeout).WithPolling(processPolling).Should(HaveLen(2))
	toWorkers := func(signal syscall.Signal) {
		for _, worker := range alive.workers() {
			g.Expect(syscall.Kill(-worker, signal)).To(Succeed())
		}
	}
	toWorkers(syscall.SIGSTOP) // so that the drain does not end before the cleanup

	cleaned := start(t, environment, "cleanup").wait()

	g.Expect(cleaned.code).To(Equal(0))
	g.Expect(strings.Count(cleaned.out, "removed the temporary files in ")).To(Equal(1), "those of the run that was killed")
	g.Expect(drains()).To(HaveLen(2), "the other run goes on")
	toWorkers(syscall.SIGCONT)
	alive.signal(syscall.SIGINT)
	g.Expect(alive.wait().code).To(Equal(130))
	for _, user := range []string{"kubectl-all-killed", "kubectl-alive"} {
		run := strings.TrimSuffix(c.namespacesMade(t, user)[0], "-1")
		if user == "kubectl-all-killed" {
			g.Expect(start(t, environment, "cleanup", "--kubeconfig", c.admin(t, user), "--run", run).wait().code).To(Equal(0))
		}
		g.Expect(c.mentioning(t, run)).To(BeEmpty())
	}
}
