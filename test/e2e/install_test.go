package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// runnerModule is the module from which users install the runner.
const runnerModule = "github.com/deletion-conformance/deletion-conformance"

// revision is a version of a module as a module proxy describes it.
type revision struct {
	Version string
	Time    time.Time
}

// git returns the output of a git command in the repository.
func git(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root(t)}, arguments...)...).Output()
	if err != nil {
		t.Skip("this is not a clone: ", err)
	}
	return strings.TrimSpace(string(out))
}

// proxy returns a file-based module proxy with one module, the last commit of this repository, without a release.
func proxy(t *testing.T) (dir string, latest revision) {
	t.Helper()
	g := NewWithT(t)
	var err error
	latest.Time, err = time.Parse(time.RFC3339, git(t, "log", "-1", "--format=%cI"))
	g.Expect(err).NotTo(HaveOccurred())
	latest.Time = latest.Time.UTC()
	latest.Version = module.PseudoVersion("v0", "", latest.Time, git(t, "rev-parse", "HEAD")[:12])
	dir = t.TempDir()
	versions := filepath.Join(dir, filepath.FromSlash(runnerModule), "@v")
	g.Expect(os.MkdirAll(versions, 0o755)).To(Succeed())
	info, err := json.Marshal(latest)
	g.Expect(err).NotTo(HaveOccurred())
	for path, content := range map[string][]byte{
		filepath.Join(versions, "list"):                  nil,
		filepath.Join(versions, latest.Version+".info"):  info,
		filepath.Join(filepath.Dir(versions), "@latest"): info,
		filepath.Join(versions, latest.Version+".mod"):   []byte(git(t, "show", "HEAD:go.mod") + "\n"),
	} {
		g.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	}
	clone := t.TempDir() // of the commit only: the repository of a git worktree is elsewhere
	git(t, "clone", "--quiet", "--no-checkout", root(t), clone)
	file, err := os.Create(filepath.Join(versions, latest.Version+".zip"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(zip.CreateFromVCS(file, module.Version{Path: runnerModule, Version: latest.Version}, clone, "HEAD", "")).To(Succeed())
	g.Expect(file.Close()).To(Succeed())
	return dir, latest
}

// install installs the latest runner from a proxy, with its dependencies from the module cache, until the test ends.
func install(t *testing.T, proxy string, latest revision) (runner string) {
	t.Helper()
	g := NewWithT(t)
	cache := goEnv(t, "GOMODCACHE")
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(runnerModule), "@v", latest.Version+".*"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, path := range append(left, filepath.Join(cache, filepath.FromSlash(runnerModule)+"@"+latest.Version)) {
			g.Expect(os.RemoveAll(path)).To(Succeed())
		}
	})
	bin := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "install", runnerModule+"/cmd/runner@latest")
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "GOBIN="+bin, "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -modcacherw", "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download"))
	out, err := command.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	return filepath.Join(bin, "runner")
}

func TestGoInstall(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	proxy, latest := proxy(t)

	runner := install(t, proxy, latest)

	version, err := exec.CommandContext(t.Context(), runner, "version").Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(version)).To(MatchRegexp(`^runner %s \(go\S+, \w+/\w+, commit %s\)\n$`, latest.Version, git(t, "rev-parse", "HEAD")[:12]))
	behaviors, err := exec.CommandContext(t.Context(), runner, "list", "--output", "markdown").Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.TrimSpace(string(behaviors))).To(Equal(git(t, "show", "HEAD:docs/behaviors.md")), "with the lines of the specs")

	unreachable := []string{"KUBERNETES_MIRROR=127.0.0.1:1"}
	unbuilt := exec.CommandContext(t.Context(), runner, "--provider", "embedded", "--kubernetes-source", "download")
	unbuilt.Env = append(emptyEnvironment(t), unreachable...)
	said, err := unbuilt.CombinedOutput()
	g.Expect(err).To(HaveOccurred())
	g.Expect(unbuilt.ProcessState.ExitCode()).To(Equal(2))
	g.Expect(string(said)).To(MatchRegexp(`(?m)^runner: connect to 127\.0\.0\.1:1: .*connection refused\n$`))
	t.Run("and builds Kubernetes", func(t *testing.T) {
		g := NewWithT(t)
		here := t.TempDir()
		command := exec.CommandContext(t.Context(), runner, "--provider", "embedded", "--nodes", "0", "--label-filter", "finalizers.held || kubectl.dry-run")
		command.Dir, command.Env = here, append(append(os.Environ(), "XDG_CACHE_HOME="+here, "GOCACHE="+goEnv(t, "GOCACHE"), "KUBECONFIG=", "KUBEBUILDER_ASSETS=", "KUBERNETES_VERSION=", "KUBERNETES_SOURCE="), unreachable...)
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring("cannot be downloaded and is built instead: connect to 127.0.0.1:1"))
		g.Expect(filepath.Glob(filepath.Join(here, "deletion-conformance", "kubernetes", "v*", "kube-apiserver"))).To(HaveLen(1))
	})
}

// goEnv returns a setting of Go.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}
