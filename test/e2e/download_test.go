package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/download/downloadtest"
)

// officialBinaries serves the built Kubernetes as a release, and returns a runner that knows its digests.
func officialBinaries(t *testing.T) (server *downloadtest.Server, runner string) {
	t.Helper()
	g := NewWithT(t)
	if built.missing != nil {
		t.Skip(built.missing)
	}
	if runtime.GOOS != "linux" {
		t.Skip("official binaries exist for Linux only")
	}
	server = downloadtest.New(t)
	version := strings.TrimPrefix(filepath.Base(built.kubernetes), "v")
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		binary, err := os.ReadFile(filepath.Join(built.kubernetes, component))
		if component == "kubectl" {
			binary, err = []byte("#!/bin/sh\n"), nil
		}
		g.Expect(err).NotTo(HaveOccurred())
		server.AddImage(t, version, component, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, binary)
	}
	dir := t.TempDir()
	records, overlay := filepath.Join(dir, "releases.yaml"), filepath.Join(dir, "overlay.json")
	g.Expect(os.WriteFile(records, server.YAML(t), 0o600)).To(Succeed())
	replaced := filepath.Join(root(t), "provider", "embedded", "download", "releases.yaml")
	content, err := json.Marshal(map[string]any{"Replace": map[string]string{replaced: records}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(overlay, content, 0o600)).To(Succeed())
	runner = filepath.Join(dir, "runner")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", runner, "../../cmd/runner").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	return server, runner
}

// TestDownload runs on binaries that are downloaded: after an interruption, which keeps what arrived, and from a server that then sends
// something else.
func TestDownload(t *testing.T) {
	g := NewWithT(t)
	server, runner := officialBinaries(t)
	_, environment := embedding(t)
	run := []string{"--provider", "embedded", "--nodes", "0", "--label-filter", "finalizers.held || cascade.foreground.circle", "--kubernetes-mirror", server.Address}

	begun := make(chan struct{})
	server.Break(downloadtest.Hold(sync.OnceFunc(func() { close(begun) })))
	interrupted := startWith(t, runner, environment, append(run, "--kubernetes-source", "download")...)
	<-begun
	g.Eventually(arrived).WithArguments(environment).WithTimeout(waitTimeout).WithPolling(polling).Should(
		BeNumerically(">=", downloadtest.Beginning), "what was sent of a binary is kept")
	interrupted.signal(syscall.SIGINT)
	g.Expect(interrupted.wait().code).To(Equal(130))

	server.Break(nil)
	server.Requests()
	reports := filepath.Join(t.TempDir(), "reports")
	r := startWith(t, runner, environment, append(run, "--report-dir", reports)...)
	r.reports = reports
	ran := r.wait()
	g.Expect(ran.code).To(BeZero())
	g.Expect(ran.errOut).To(MatchRegexp(`(?m)^Downloading Kubernetes \S+ from ` + regexp.QuoteMeta(server.Address) + `\.$`))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Passed)).To(And(HaveKey("finalizers.held"), HaveKey("cascade.foreground.circle")))
	g.Expect(slices.ContainsFunc(server.Requests(), func(r *http.Request) bool { return r.Header.Get("Range") != "" })).To(BeTrue(),
		"downloads go on where they ended")
	g.Expect(startWith(t, runner, environment, run...).wait().code).To(BeZero())
	g.Expect(server.Requests()).To(BeEmpty(), "nothing is downloaded twice")

	_, elsewhere := embedding(t)
	server.Break(downloadtest.Other)
	refused := startWith(t, runner, elsewhere, append(run, "--kubernetes-source", "download")...).wait()
	g.Expect(refused.code).To(Equal(2))
	g.Expect(refused.errOut).To(ContainSubstring("is not what was released, and was removed"))
}

// arrived returns how many bytes of unfinished downloads are in the cache of an environment.
func arrived(environment []string) (bytes int64, err error) {
	for _, variable := range environment {
		cache, found := strings.CutPrefix(variable, "XDG_CACHE_HOME=")
		if !found {
			continue
		}
		err = errors.Join(err, filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".part" {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				bytes += info.Size()
			}
			return err
		}))
	}
	return bytes, err
}
