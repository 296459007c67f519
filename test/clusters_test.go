package test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// renamed is a kubeconfig with its only context under another name.
func renamed(t *testing.T, kubeconfig, name string) string {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.LoadFromFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	config.Contexts[name] = config.Contexts[config.CurrentContext]
	delete(config.Contexts, config.CurrentContext)
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return write(t, string(content))
}

func TestAClusterThatSaysNothingKeepsNoOtherFromBeingJudged(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	one, two := shared.in(t), bare.in(t)

	ran := startRun(t, "--procs", "2", "--label-filter", "finalizers.held || cascade.foreground.circle",
		"--kubeconfig", renamed(t, one.admin(t, "everywhere"), "one"), "--kubeconfig", renamed(t, two.admin(t, "everywhere"), "two"),
		"--kubeconfig", write(t, kubeconfig(silentServer(t)))).wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(strings.Index(ran.out, "[one] passed")).To(And(
		BeNumerically(">", 0), BeNumerically("<", strings.Index(ran.out, "[there] unusable"))), "nor from being judged at once")
	whole := ran.report(t)
	g.Expect(whole.Clusters).To(HaveLen(3))
	for i, want := range []struct {
		name         string
		held, circle v1alpha1.Outcome
	}{
		{"one", v1alpha1.Passed, v1alpha1.Passed},
		{"two", v1alpha1.Passed, v1alpha1.Skipped},
		{"there", v1alpha1.Errored, v1alpha1.Errored},
	} {
		cluster := whole.Clusters[i]
		g.Expect(cluster.Name).To(Equal(want.name))
		g.Expect(resultOf(cluster, "finalizers.held").Outcome).To(Equal(want.held), want.name)
		g.Expect(resultOf(cluster, "cascade.foreground.circle").Outcome).To(Equal(want.circle), want.name)
		g.Expect(cluster.Results).To(HaveLen(len(catalogue(t))))
	}
	g.Expect(one.mentioning(t, whole.RunID)).To(BeEmpty())
	g.Expect(two.mentioning(t, whole.RunID)).To(BeEmpty())
}

func TestAnEmbeddedClusterComesAndGoesWithItsRun(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	g := NewWithT(t)
	temporary, environment := embedding(t)
	reports := filepath.Join(t.TempDir(), "reports")

	r := start(t, environment,
		"--provider", "local", "--without-controllers", "--label-filter", "finalizers.held || cascade.foreground.circle",
		"--report-dir", reports)
	r.reports = reports
	ran := r.wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey("finalizers.held"))
	g.Expect(reasons(cluster, v1alpha1.Skipped)).To(HaveKeyWithValue("cascade.foreground.circle", ContainSubstring("--without-controllers")))
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}

// embedding is the environment of runs that make an embedded cluster, and their folder for temporary files.
func embedding(t *testing.T) (temporary string, environment []string) {
	t.Helper()
	temporary, err := os.MkdirTemp("", "runner-test-") // shorter than the test's own: a socket's path must be
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	return temporary, append(nothingSetUp(t), "TMPDIR="+temporary, "KUBERNETES_VERSION="+filepath.Base(built.kubernetes))
}

func TestCleanupRemovesTheEmbeddedClusterOfAKilledRun(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	g := NewWithT(t)
	temporary, environment := embedding(t)
	ran := start(t, environment, "--provider", "local", "--label-filter", holding, long)
	g.Eventually(ran.out.String).WithTimeout(patience).WithPolling(polling).Should(ContainSubstring("behaviours to judge"))
	ran.signal(syscall.SIGKILL)
	ran.wait()
	g.Expect(os.ReadDir(temporary)).NotTo(BeEmpty())

	cleaned := start(t, environment, "cleanup").wait()

	g.Expect(cleaned.code).To(Equal(0))
	g.Expect(cleaned.out).To(ContainSubstring("removed the embedded cluster in " + temporary))
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}
