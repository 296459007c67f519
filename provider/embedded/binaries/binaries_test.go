package binaries

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unreachable is a mirror that refuses connections.
const unreachable = "127.0.0.1:1"

// create creates empty files.
func create(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGet_Existing(t *testing.T) {
	into := t.TempDir()
	built, downloaded := filepath.Join(into, "v1.34.4"), filepath.Join(into, "downloads", "v1.34.4")
	options := Options{Version: "v1.34.4", Into: into, Mirror: unreachable, Module: filepath.Join(into, "none")}

	create(t, filepath.Join(built, "kubernetes"))
	for source, want := range map[Source]string{Auto: built, Build: built, Download: ""} {
		options.Source = source
		if dir, _ := Get(t.Context(), options); dir != want {
			t.Errorf("%s, when it was built: want %q, got %q", source, want, dir)
		}
	}
	for _, binary := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		create(t, filepath.Join(downloaded, binary))
	}
	for source, want := range map[Source]string{Auto: built, Build: built, Download: downloaded} {
		options.Source = source
		if dir, err := Get(t.Context(), options); err != nil || dir != want {
			t.Errorf("%s, when it was built and downloaded: want %q, got %q, %v", source, want, dir, err)
		}
	}
	if err := os.RemoveAll(built); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[Source]string{Auto: downloaded, Build: "", Download: downloaded} {
		options.Source = source
		if dir, _ := Get(t.Context(), options); dir != want {
			t.Errorf("%s, when it was downloaded: want %q, got %q", source, want, dir)
		}
	}
	if dir, err := Find(into, "1.34.4"); err != nil || dir != downloaded {
		t.Errorf("want the download to be found, got %q, %v", dir, err)
	}
	if _, err := Find(into, "1.34.3"); err == nil || !strings.Contains(err.Error(), "runner cluster build --kubernetes-version 1.34.3") {
		t.Errorf("want no other version, and what to do, got: %v", err)
	}
}

func TestGet_Unreachable(t *testing.T) {
	var out bytes.Buffer
	options := Options{Version: "1.35.4", Into: t.TempDir(), Mirror: unreachable, Module: filepath.Join(t.TempDir(), "none"), Out: &out}
	_, err := Get(t.Context(), options)
	if err == nil || !strings.Contains(err.Error(), "does not contain the module that builds Kubernetes") {
		t.Errorf("want it to be built, got: %v", err)
	}
	if said := out.String(); !strings.Contains(said, "\nKubernetes 1.35.4 cannot be downloaded and is built instead: connect to "+unreachable) {
		t.Errorf("want one line with the reason, got: %s", said)
	}

	out.Reset()
	options.Source = Build
	if _, err := Get(t.Context(), options); err == nil || out.Len() > 0 {
		t.Errorf("want no attempt to download it, got: %s", &out)
	}
	options.Source = Download
	if _, err := Get(t.Context(), options); err == nil || !strings.Contains(err.Error(), "connect to "+unreachable) {
		t.Errorf("want no attempt to build it, got: %v", err)
	}
}

// TestGet_Begun checks that a build that was begun is finished: what tests the API server first must not wait for a server twice.
func TestGet_Begun(t *testing.T) {
	into := t.TempDir()
	create(t, filepath.Join(into, "v1.37.2", "api-server-alone", ".built-from"))
	var out bytes.Buffer
	_, err := Get(t.Context(), Options{Version: "1.37.2", Into: into, Mirror: unreachable, Module: filepath.Join(into, "none"), Out: &out})
	if err == nil || out.Len() > 0 {
		t.Errorf("want it to be built, got: %v, %s", err, &out)
	}
}

func TestGet_Version(t *testing.T) {
	if _, err := Get(t.Context(), Options{Version: "1.37", Into: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "with its patch") {
		t.Errorf("want to be told how to write it, got: %v", err)
	}
}
