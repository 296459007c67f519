package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an image as an OCI archive: an OCI layout in a tar file. Container runtimes import it under the name.
func writeArchive(path, name string, index v1.ImageIndex, date time.Time) error {
	full, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return err
	}
	tagged, ok := full.(reference.Tagged)
	if !ok {
		return errors.New("the name of the image has no tag")
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": full.String(), "org.opencontainers.image.ref.name": tagged.Tag(),
	})); err != nil {
		return err
	}
	return pack(dir, path, date)
}

// pack writes the files of a directory into an archive, in the order of their names.
func pack(dir, path string, date time.Time) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(file)
	defer func() { err = errors.Join(err, archive.Close(), file.Close()) }()
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(archive, path, filepath.ToSlash(name), entry, date)
	})
}

// add adds a file or a directory to an archive.
func add(archive *tar.Writer, path, name string, entry fs.DirEntry, date time.Time) error {
	if entry.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: date})
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: date,
	}); err != nil {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	_, err = io.Copy(archive, content)
	return err
}
