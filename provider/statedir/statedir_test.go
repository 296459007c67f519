package statedir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// elsewhere creates a short directory and uses it for temporary files.
func elsewhere(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "statedir-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	t.Setenv("TMPDIR", path)
	return path
}

func TestDir(t *testing.T) {
	elsewhere(t)
	dir, err := New(Embedded)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("want a directory for its owner alone, got %v, %v", info.Mode(), err)
	}
	written, err := dir.Write("file", []byte("content"))
	if err != nil || written != dir.Path("file") {
		t.Errorf("wrote %s: %v", written, err)
	}
	if _, err := dir.Make("a", "b"); err != nil {
		t.Error(err)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir.Path()); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestStale(t *testing.T) {
	temporary := elsewhere(t)
	living, err := New(Embedded)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := New(Embedded)
	if err != nil {
		t.Fatal(err)
	}
	if err := stale.lock.Close(); err != nil { // as the kernel does when a runner ends
		t.Fatal(err)
	}
	starting := filepath.Join(temporary, prefix+string(Embedded)+"-starting")
	abandoned := filepath.Join(temporary, prefix+string(Embedded)+"-abandoned")
	foreign := filepath.Join(temporary, "something-else")
	for _, path := range []string{starting, abandoned, foreign} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	longAgo := time.Now().Add(-2 * minAge)
	if err := os.Chtimes(abandoned, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(foreign, filepath.Join(temporary, prefix+string(Embedded)+"-link")); err != nil {
		t.Fatal(err)
	}

	removed, err := Stale(Embedded, os.RemoveAll)
	if err != nil {
		t.Error(err)
	}
	slices.Sort(removed)
	want := []string{stale.Path(), abandoned}
	slices.Sort(want)
	if !slices.Equal(removed, want) {
		t.Errorf("want %v to be removed, got %v", want, removed)
	}
	for _, path := range []string{living.Path(), starting, foreign} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("want %s to be left alone: %v", path, err)
		}
	}
}

func TestNew_LongPath(t *testing.T) {
	long := filepath.Join(elsewhere(t), strings.Repeat("x", 60))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	if _, err := New(Embedded); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("want to be told about TMPDIR, got: %v", err)
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
