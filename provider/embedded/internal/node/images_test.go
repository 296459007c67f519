package node

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestImages_Write(t *testing.T) {
	busybox := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(busybox, []byte("#!/bin/sh\nprintf 'busybox\\nsh\\nsleep\\nmkfs.minix\\n'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	images := Images{Busybox: "example.com/tools/busybox:1", Pause: "example.com/pause:2", StopSignal: "example.com/stopped:3"}
	archive := filepath.Join(t.TempDir(), "images.tar")
	if err := images.Write(busybox, archive); err != nil {
		t.Fatal(err)
	}

	files := layerOf(t, archive, images.Busybox)
	for _, want := range []string{"bin/busybox", "bin/sh", "bin/sleep", "tmp/"} {
		if !slices.Contains(files, want) {
			t.Errorf("want %s in the image, got %v", want, files)
		}
	}
	if slices.Contains(files, "bin/mkfs.minix") {
		t.Errorf("want no more than scripts need, got %v", files)
	}
	if other := layerOf(t, archive, images.Pause); !slices.Equal(files, other) {
		t.Errorf("want both images to hold the same, got %v and %v", files, other)
	}
}

func TestImages_NoName(t *testing.T) {
	busybox := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(busybox, []byte("#!/bin/sh\necho busybox\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Images{Busybox: "Not A Name", Pause: "example.com/pause:2", StopSignal: "example.com/stopped:3"}.Write(busybox, filepath.Join(t.TempDir(), "images.tar"))
	if err == nil {
		t.Error("want an error")
	}
}

// layerOf returns the files in the only layer of an image in the archive.
func layerOf(t *testing.T, archive, reference string) []string {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("want one layer, got %v, %v", layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, header.Name)
	}
}
