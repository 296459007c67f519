package sonobuoy_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/sonobuoy"
)

// worker receives the progress. last returns the latest update.
func worker(t *testing.T, handle http.HandlerFunc) (last func() map[string]any) {
	t.Helper()
	g := NewWithT(t)
	var mu sync.Mutex
	var latest map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		latest = nil
		if r.Method == http.MethodPost && r.URL.Path == "/progress" {
			_ = json.NewDecoder(r.Body).Decode(&latest)
		}
		if handle != nil {
			handle(w, r)
		}
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv(sonobuoy.PortVariable, port)
	t.Setenv(sonobuoy.ResultsVariable, t.TempDir())
	return func() map[string]any {
		mu.Lock()
		defer mu.Unlock()
		return latest
	}
}

func run(t *testing.T, p *sonobuoy.Plugin) {
	t.Helper()
	shown := p.Follow(progress.New(io.Discard, 1, 1, progress.Normal))
	shown.SetUp(v1alpha1.Cluster{}, 3)
	for id, outcome := range map[string]v1alpha1.Outcome{"a": v1alpha1.Passed, "b": v1alpha1.Failed, "c": v1alpha1.Skipped} {
		shown.Ended("cluster", v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: id}, Outcome: outcome})
	}
	shown.TearingDown("cluster")
	NewWithT(t).Expect(shown.Close()).To(Succeed())
}

func TestFollower_LatestProgress(t *testing.T) {
	g := NewWithT(t)
	last := worker(t, nil)
	plugin, err := sonobuoy.Current("--sonobuoy")
	g.Expect(err).NotTo(HaveOccurred())

	run(t, plugin)

	g.Expect(last()).To(Equal(map[string]any{"msg": "cleaning up", "total": 3.0, "completed": 3.0, "failures": []any{"b"}}))
}

func TestFollower_NoWorker(t *testing.T) {
	g := NewWithT(t)
	worker(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	plugin, err := sonobuoy.Current("--sonobuoy")
	g.Expect(err).NotTo(HaveOccurred())
	run(t, plugin)
	t.Setenv(sonobuoy.PortVariable, "")
	plugin, err = sonobuoy.Current("--sonobuoy")
	g.Expect(err).NotTo(HaveOccurred())
	run(t, plugin)
}

func TestSubmit(t *testing.T) {
	g := NewWithT(t)
	worker(t, nil)
	plugin, err := sonobuoy.Current("--sonobuoy")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.MkdirAll(plugin.ReportDir(), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(plugin.ReportDir(), "junit.xml"), []byte("<testsuites/>"), 0o600)).To(Succeed())

	g.Expect(plugin.Submit()).To(Succeed())

	named, err := os.ReadFile(filepath.Join(os.Getenv(sonobuoy.ResultsVariable), "done"))
	g.Expect(err).NotTo(HaveOccurred())
	packed, err := os.Open(string(named))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = packed.Close() })
	g.Expect(files(packed)).To(Equal(map[string]string{"junit.xml": "<testsuites/>"}))
}

// files returns the files of a compressed archive by name.
func files(packed io.Reader) (map[string]string, error) {
	found := map[string]string{}
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg {
			found[header.Name] = string(content)
		}
	}
}

func TestCurrent_NoPlugin(t *testing.T) {
	t.Setenv(sonobuoy.ResultsVariable, "")
	_, err := sonobuoy.Current("--sonobuoy")
	NewWithT(t).Expect(err).To(MatchError("--sonobuoy: SONOBUOY_RESULTS_DIR is not set: use it in a plugin of Sonobuoy, as in deploy/sonobuoy"))
}
