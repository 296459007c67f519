package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

func TestEmbedded(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	g := NewWithT(t)
	temporary, environment := embedding(t)
	reports := filepath.Join(t.TempDir(), "reports")

	r := start(t, environment,
		"--provider", "embedded", "--without-controllers", "--label-filter", "finalizers.held || cascade.foreground.circle",
		"--report-dir", reports)
	r.reports = reports
	ran := r.wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey("finalizers.held"))
	g.Expect(reasons(cluster, v1alpha1.Skipped)).To(HaveKeyWithValue("cascade.foreground.circle", ContainSubstring("--without-controllers")))
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}

func TestEmbedded_DefaultNode(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	if err := embedded.NodeSupported(); err != nil {
		t.Skip(err)
	}
	g := NewWithT(t)
	temporary, environment := embedding(t)

	ran := startRunIn(t, environment, "--provider", "embedded", "--label-filter", "graceful.node.early-exit").wait()

	g.Expect(ran.code).To(Equal(0))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Passed)).To(HaveKey("graceful.node.early-exit"))
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}

// embedding returns the environment of runs with an embedded cluster, and their directory for temporary files.
func embedding(t *testing.T) (temporary string, environment []string) {
	t.Helper()
	temporary, err := os.MkdirTemp("", "runner-test-") // shorter than the test's own, because it contains sockets
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	return temporary, append(emptyEnvironment(t), "TMPDIR="+temporary, "KUBERNETES_VERSION="+filepath.Base(built.kubernetes))
}

func TestCleanup_EmbeddedCluster(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	g := NewWithT(t)
	temporary, environment := embedding(t)
	ran := start(t, environment, "--provider", "embedded", "--nodes", "0", "--label-filter", holding, long)
	g.Eventually(ran.out.String).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainSubstring("behaviors with up to"))
	ran.signal(syscall.SIGKILL)
	ran.wait()
	g.Expect(os.ReadDir(temporary)).NotTo(BeEmpty())

	cleaned := start(t, environment, "cleanup").wait()

	g.Expect(cleaned.code).To(Equal(0))
	g.Expect(cleaned.out).To(ContainSubstring("removed the embedded cluster in " + temporary))
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}

func TestClusterUp_ComponentEnds(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			temporary, environment := embedding(t)
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			up := start(t, environment, "cluster", "up", "--nodes", "0", "--without-controllers", "--write-kubeconfig", kubeconfig)
			g.Eventually(up.out.String).WithTimeout(waitTimeout).WithPolling(polling).Should(ContainSubstring(kubeconfig))

			g.Expect(syscall.Kill(component(t, name, temporary), syscall.SIGKILL)).To(Succeed())
			ended := up.wait()

			g.Expect(ended.code).To(Equal(4))
			g.Expect(ended.errOut).To(ContainSubstring("run the embedded cluster: " + name + " ended (signal: killed); the last lines of its log:"))
			g.Expect(os.ReadDir(temporary)).To(BeEmpty())
			g.Expect(kubeconfig).NotTo(BeAnExistingFile())
		})
	}
}

// toolBinaries returns a directory with the binaries of envtest, as links to those that were built here.
func toolBinaries(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		NewWithT(t).Expect(os.Symlink(filepath.Join(built.kubernetes, name), filepath.Join(dir, name))).To(Succeed())
	}
	return dir
}

func TestEmbedded_Binaries(t *testing.T) {
	t.Parallel()
	if built.missing != nil {
		t.Skip(built.missing)
	}
	controllers := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	for _, test := range []struct {
		name     string
		binaries []string
		skipped  string // the skip reason of the behavior that needs a collector; empty when it is tested
	}{
		{"of envtest, without controllers", controllers[:2], "no kube-controller-manager in "},
		{"without a scheduler", controllers[:3], "no kube-scheduler in "},
		{"of a whole control plane", controllers, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			_, environment := embedding(t)
			environment = append(environment, "PATH="+t.TempDir(), "KUBERNETES_VERSION=",
				"KUBEBUILDER_ASSETS="+toolBinaries(t, test.binaries...))
			reports := filepath.Join(t.TempDir(), "reports")

			r := start(t, environment, "--provider", "embedded", "--nodes", "0",
				"--label-filter", "finalizers.held || cascade.foreground.circle || kubectl.partial-failure", "--report-dir", reports)
			r.reports = reports
			ran := r.wait()

			g.Expect(ran.code).To(Equal(0))
			cluster := ran.cluster(t)
			g.Expect(cluster.ServerVersion).To(Equal(filepath.Base(built.kubernetes)))
			g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey("finalizers.held"))
			if test.skipped == "" {
				g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey("cascade.foreground.circle"))
			} else {
				g.Expect(reasons(cluster, v1alpha1.Skipped)).To(HaveKeyWithValue("cascade.foreground.circle", ContainSubstring(test.skipped)))
			}
			g.Expect(reasons(cluster, v1alpha1.Skipped)).To(HaveKeyWithValue("kubectl.partial-failure", ContainSubstring("kubectl")),
				"there is none beside them, and none in PATH")
		})
	}
}
