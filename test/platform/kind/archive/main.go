// Command archive writes an archive of container images, as `docker save` does, for a kind cluster without access to a registry.
// Use: archive KIND FILE ARGUMENT..., where KIND and its arguments are
//
//	pods BUSYBOX          the images of the behaviors' pods, built from a static busybox
//	programs BINARY IMAGE one static binary under many names, such as that of etcd for registry.k8s.io/etcd:3.6
//	node ROOT IMAGE       a root file system, archived, for kind's nodes
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// uncompressed disables compression: layers are read once, on this machine.
var uncompressed = tarball.WithCompressionLevel(gzip.NoCompression)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "archive: it takes what to archive, a file, and what that needs")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintf(os.Stderr, "archive: %v\n", err)
		os.Exit(1)
	}
}

// write writes images of a kind, built from one file, to an archive under the given names.
func write(kind, archive, from string, names []string) error {
	switch kind {
	case "pods":
		return embedded.Images{Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage}.Write(from, archive)
	case "programs":
		layer, err := programLayer(from, names)
		if err != nil {
			return err
		}
		return writeImage(archive, layer, v1.Config{Env: []string{"PATH=/usr/local/bin"}}, names)
	case "node":
		layer, err := tarball.LayerFromFile(from, uncompressed)
		if err != nil {
			return err
		}
		// As in kind's own Dockerfile: systemd must know that it is in a container, and has its own stop signal.
		return writeImage(archive, layer, v1.Config{
			Env: []string{"container=docker"}, StopSignal: "SIGRTMIN+3", Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		}, names)
	}
	return errors.New("there is no such kind of archive: " + kind)
}

// writeImage writes an image with one layer under several names.
func writeImage(archive string, layer v1.Layer, config v1.Config, names []string) error {
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, RootFS: v1.RootFS{Type: "layers"}, Config: config,
	})
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err != nil {
		return err
	}
	tagged := map[name.Tag]v1.Image{}
	for _, reference := range names {
		tag, err := name.NewTag(reference)
		if err != nil {
			return err
		}
		tagged[tag] = image
	}
	return tarball.MultiWriteToFile(archive, tagged)
}

// programLayer returns a root file system with a binary under the names of the images.
func programLayer(binary string, images []string) (v1.Layer, error) {
	built, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	const dir, program = "usr/local/bin/", "kubernetes"
	entries := []tar.Header{{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}}
	for _, image := range images {
		tag, err := name.NewTag(image)
		if err != nil {
			return nil, err
		}
		entries = append(entries, tar.Header{Typeflag: tar.TypeSymlink, Name: dir + path.Base(tag.RepositoryStr()), Linkname: program})
	}
	entries = append(entries, tar.Header{Typeflag: tar.TypeReg, Name: dir + program, Mode: 0o755, Size: int64(len(built))})
	for _, entry := range entries {
		if err := archive.WriteHeader(&entry); err != nil {
			return nil, err
		}
	}
	if _, err := archive.Write(built); err != nil { // part of the last entry
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }, uncompressed)
}
