package build

import (
	"bytes"
	"maps"
	"path/filepath"
	"testing"
)

func TestPack_Current(t *testing.T) {
	packed, err := Pack(filepath.Join("..", "..", "..", "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, embeddedModule) {
		t.Fatal("module.txtar is out of date: run make docs")
	}
}

func TestPack_RoundTrip(t *testing.T) {
	repository, err := readSource(filepath.Join("..", "..", "..", "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	for range 2 { // the second time on top of the first
		build, err := Options{Into: into}.build(kubernetes())
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(build.source.dir) != into || !build.version.EqualTo(repository.version) {
			t.Errorf("want %s below %s, got %s in %s", repository.version, into, build.version, build.source.dir)
		}
		if !maps.EqualFunc(build.source.files, repository.files, bytes.Equal) {
			t.Errorf("want the files of the repository, got %q", sortedKeys(build.source.files))
		}
	}
}
