package download

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/download/downloadtest"
)

// released serves a release, and makes it the only recorded one.
func released(t *testing.T) *downloadtest.Server {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("official binaries exist for Linux only")
	}
	server := downloadtest.New(t)
	for _, image := range images {
		server.AddImage(t, "1.37.2", image.repository, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, content(t, image.binary))
	}
	server.AddNode(t, "1.37.2", runtime.GOARCH, content(t, kubelet))
	record(t, server)
	return server
}

// record makes the releases of a server the recorded ones.
func record(t *testing.T, server *downloadtest.Server) {
	t.Helper()
	before := recorded
	recorded = server.YAML(t)
	t.Cleanup(func() { recorded = before })
}

// content returns half a megabyte that begins with a name.
func content(t *testing.T, name string) []byte {
	t.Helper()
	random := make([]byte, 500_000)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	return append([]byte(name+"\n"), random...)
}

// begins returns the first line of a binary, or why there is none.
func begins(t *testing.T, dir, binary string) string {
	t.Helper()
	found, err := os.ReadFile(filepath.Join(dir, binary))
	if err != nil {
		return err.Error()
	}
	info, err := os.Stat(filepath.Join(dir, binary))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%s is not executable: %v, %v", binary, info.Mode(), err)
	}
	line, _, _ := bytes.Cut(found, []byte("\n"))
	return string(line)
}

func (o Options) at(server *downloadtest.Server) Options {
	o.Mirror = server.Address
	return o
}

func TestBinaries(t *testing.T) {
	server := released(t)
	var out bytes.Buffer
	options := Options{Version: "1.37.2", Into: t.TempDir(), Node: true, Out: &out}.at(server)
	dir, err := Binaries(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, binary := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", kubelet} {
		if begun := begins(t, dir, binary); begun != binary {
			t.Errorf("%s: got %q", binary, begun)
		}
	}
	if found, err := Find(options.Into, "1.37.2"); err != nil || found != dir {
		t.Errorf("want it to be found, got %q, %v", found, err)
	}
	if said := out.String(); said != fmt.Sprintf("Downloading Kubernetes 1.37.2 from %s.\n  downloaded 3 MB in 0s.\n", server.Address) {
		t.Errorf("want a line at the start and the end, got: %s", said)
	}
	if left, err := filepath.Glob(filepath.Join(options.Into, "*.part")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}

	server.Requests()
	out.Reset()
	if again, err := Binaries(t.Context(), options); err != nil || again != dir {
		t.Errorf("want the same again, got %q, %v", again, err)
	}
	if requests := server.Requests(); len(requests) > 0 || out.Len() > 0 {
		t.Errorf("want nothing to be downloaded twice, got %d requests, %s", len(requests), &out)
	}
}

// TestBinaries_OtherVersion checks that versions share what is the same in both, such as etcd.
func TestBinaries_OtherVersion(t *testing.T) {
	server := released(t)
	other := downloadtest.Record{Images: map[string]string{}}
	for repository, digest := range server.Records["1.37.2"].Images {
		other.Images[repository] = digest
	}
	server.Records["1.37.1"] = other
	server.AddImage(t, "1.37.1", "kube-apiserver", v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, content(t, "before"))
	recorded = server.YAML(t)
	options := Options{Version: "1.37.2", Into: t.TempDir()}.at(server)
	if _, err := Binaries(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	server.Requests()
	options.Version = "1.37.1"
	dir, err := Binaries(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if begun := begins(t, dir, "kube-apiserver"); begun != "before" {
		t.Errorf("kube-apiserver: got %q", begun)
	}
	if begun := begins(t, dir, "etcd"); begun != "etcd" {
		t.Errorf("etcd: got %q", begun)
	}
	for _, request := range server.Requests() {
		if strings.HasPrefix(request.URL.Path, "/v2/etcd/") {
			t.Errorf("etcd is downloaded again: %s", request.URL)
		}
	}
}

func TestBinaries_Interrupted(t *testing.T) {
	server := released(t)
	options := Options{Version: "1.37.2", Into: t.TempDir()}.at(server)
	server.Break(downloadtest.Cut)
	if _, err := Binaries(t.Context(), options); err == nil || !strings.Contains(err.Error(), "the download was interrupted") {
		t.Errorf("want it to be given up, got: %v", err)
	}
	if _, err := Find(options.Into, "1.37.2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want nothing to be found, got: %v", err)
	}
	parts, err := filepath.Glob(filepath.Join(options.Into, "*.part"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("want what arrived to be kept, got %v, %v", parts, err)
	}

	server.Break(nil)
	server.Requests()
	dir, err := Binaries(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if begun := begins(t, dir, "kube-apiserver"); begun != "kube-apiserver" {
		t.Errorf("got %q", begun)
	}
	if !slices.ContainsFunc(server.Requests(), func(r *http.Request) bool { return r.Header.Get("Range") != "" }) {
		t.Error("want downloads to go on where they ended")
	}
}

func TestBinaries_Failure(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault downloadtest.Fault
		want  string
	}{
		{"changed", downloadtest.Other, "is not what was released"},
		{"truncated", downloadtest.Cut, "the download was interrupted after"},
		{"missing", func(w http.ResponseWriter, r *http.Request, _ http.Handler) { http.NotFound(w, r) }, "404"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := released(t)
			options := Options{Version: "1.37.2", Into: t.TempDir()}.at(server)
			server.Break(test.fault)
			if _, err := Binaries(t.Context(), options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got: %v", test.want, err)
			}
			if _, err := Find(options.Into, "1.37.2"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("want nothing that could be executed, got: %v", err)
			}
			server.Break(nil)
			if _, err := Binaries(t.Context(), options); err != nil {
				t.Errorf("want it to succeed when the server is mended, got: %v", err)
			}
		})
	}
}

// TestBinaries_Kubelet checks that a missing kubelet only prevents a node.
func TestBinaries_Kubelet(t *testing.T) {
	server := released(t)
	server.Break(func(w http.ResponseWriter, r *http.Request, right http.Handler) {
		if strings.HasSuffix(r.URL.Path, ".tar.gz") {
			right = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { downloadtest.Other(w, r, nil) })
		}
		right.ServeHTTP(w, r)
	})
	var out bytes.Buffer
	dir, err := Binaries(t.Context(), Options{Version: "1.37.2", Into: t.TempDir(), Node: true, Out: &out}.at(server))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "no kubelet, which a node needs: download http://") || !strings.Contains(out.String(), "is not what was released") {
		t.Errorf("want the reason, got: %s", &out)
	}
	if fileExists(filepath.Join(dir, kubelet)) {
		t.Error("want no kubelet")
	}
}

// TestBinaries_OtherImage checks that a registry cannot serve another image of the same name.
func TestBinaries_OtherImage(t *testing.T) {
	server := released(t)
	wanted := server.YAML(t)
	server.AddImage(t, "1.37.2", "kube-apiserver", v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, content(t, "forged"))
	recorded = wanted
	dir, err := Binaries(t.Context(), Options{Version: "1.37.2", Into: t.TempDir()}.at(server))
	if err != nil {
		t.Fatal(err)
	}
	if begun := begins(t, dir, "kube-apiserver"); begun != "kube-apiserver" {
		t.Errorf("got %q", begun)
	}
}

func TestBinaries_Platform(t *testing.T) {
	server := released(t)
	server.AddImage(t, "1.37.2", "kube-apiserver", v1.Platform{OS: "linux", Architecture: "mips"}, content(t, "mips"))
	recorded = server.YAML(t)
	_, err := Binaries(t.Context(), Options{Version: "1.37.2", Into: t.TempDir()}.at(server))
	if err == nil || !strings.Contains(err.Error(), "for linux/"+runtime.GOARCH) {
		t.Errorf("want the platform, got: %v", err)
	}
}

func TestBinaries_Unreachable(t *testing.T) {
	released(t)
	start := time.Now()
	_, err := Binaries(t.Context(), Options{Version: "1.37.2", Into: t.TempDir(), Mirror: "127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "connect to 127.0.0.1:1") || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line, got: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestBinaries_Canceled(t *testing.T) {
	server := released(t)
	ctx, cancel := context.WithCancel(t.Context())
	server.Break(downloadtest.Hold(cancel))
	if _, err := Binaries(ctx, Options{Version: "1.37.2", Into: t.TempDir()}.at(server)); !errors.Is(err, context.Canceled) {
		t.Errorf("want the cancellation, got: %v", err)
	}
}

func TestCheckMirror(t *testing.T) {
	for mirror, valid := range map[string]bool{
		"": true, "registry.example.com": true, "registry.example.com/kubernetes": true, "localhost:5000": true, "127.0.0.1:5000/a/b": true,
		"https://registry.example.com": false, "kubernetes": false, "registry.example.com/Upper": false, "a b": false, "/": false,
	} {
		if err := CheckMirror(mirror); (err == nil) != valid {
			t.Errorf("%q: got %v", mirror, err)
		}
	}
}

// TestRecorded checks that the recorded releases are complete.
func TestRecorded(t *testing.T) {
	releases, err := records(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if len(releases) == 0 {
		t.Error("no release is recorded")
	}
	for _, broken := range []string{"1.37.2: {}", "1.37.2: {images: {etcd: sha256:12}}", "1.37.2: {nodes: {amd64: x}}", "1.37.2: {other: x}"} {
		if _, err := records([]byte(broken)); err == nil {
			t.Errorf("want %q to be refused", broken)
		}
	}
}
