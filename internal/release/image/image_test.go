package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
)

// made writes the archive of an image whose programs are this test, and returns its path and its index.
func made(t *testing.T) (string, v1.ImageIndex) {
	t.Helper()
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	from := source{version: "v1.2.3", commit: "abc", date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	programs := []program{{name: "runner", path: self, version: "v1.2.3"}, {name: "kubectl", path: self, version: "v1.37.2"}}
	var images []platformImage
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := from.image(v1.Platform{OS: "linux", Architecture: architecture}, programs)
		g.Expect(err).NotTo(HaveOccurred())
		images = append(images, image)
	}
	index, err := from.index(images)
	g.Expect(err).NotTo(HaveOccurred())
	archive := filepath.Join(t.TempDir(), "image.tar")
	g.Expect(writeArchive(archive, defaultName+":v1.2.3", index, from.date)).To(Succeed())
	return archive, index
}

// unpacked unpacks an archive of regular files and directories.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	g := NewWithT(t)
	file, err := os.Open(archive)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	dir, reader := t.TempDir(), tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		g.Expect(err).NotTo(HaveOccurred())
		if header.Typeflag == tar.TypeDir {
			g.Expect(os.MkdirAll(filepath.Join(dir, header.Name), 0o755)).To(Succeed())
			continue
		}
		content, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(dir, header.Name), content, 0o600)).To(Succeed())
	}
}

// files are the paths in the layers of an image, except directories.
func files(t *testing.T, image v1.Image) []string {
	t.Helper()
	g := NewWithT(t)
	layers, err := image.Layers()
	g.Expect(err).NotTo(HaveOccurred())
	var paths []string
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		g.Expect(err).NotTo(HaveOccurred())
		reader := tar.NewReader(content)
		for {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			g.Expect(err).NotTo(HaveOccurred())
			if header.Typeflag != tar.TypeDir {
				paths = append(paths, header.Name)
			}
		}
		g.Expect(content.Close()).To(Succeed())
	}
	return paths
}

func TestArchive_Reproducible(t *testing.T) {
	g := NewWithT(t)
	first, one := made(t)
	second, two := made(t)

	firstContent, err := os.ReadFile(first)
	g.Expect(err).NotTo(HaveOccurred())
	secondContent, err := os.ReadFile(second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(firstContent) == string(secondContent)).To(BeTrue(), "the archives are the same")
	firstDigest, err := one.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two.Digest()).To(Equal(firstDigest))
}

func TestArchive_Content(t *testing.T) {
	g := NewWithT(t)
	archive, _ := made(t)
	index, err := layout.ImageIndexFromPath(unpacked(t, archive))
	g.Expect(err).NotTo(HaveOccurred())
	outer, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(outer.Manifests).To(HaveLen(1))
	g.Expect(outer.Manifests[0].Annotations).To(HaveKeyWithValue("io.containerd.image.name", defaultName+":v1.2.3"))
	whole, err := index.ImageIndex(outer.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := whole.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	var platforms []string
	for _, described := range manifest.Manifests {
		platforms = append(platforms, described.Platform.String())
		image, err := whole.Image(described.Digest)
		g.Expect(err).NotTo(HaveOccurred())
		if described.Platform.OS == "unknown" {
			describesPrograms(t, image)
			continue
		}
		g.Expect(validate.Image(image)).To(Succeed())
		g.Expect(files(t, image)).To(Equal([]string{"bin/runner", "bin/kubectl"}))
		config, err := image.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Config.User).To(Equal("65532:65532"))
		g.Expect(config.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.revision", "abc"))
	}
	g.Expect(platforms).To(Equal([]string{"linux/amd64", "linux/arm64", "unknown/unknown", "unknown/unknown"}))
}

// describesPrograms checks that an attestation has a bill of materials for each program.
func describesPrograms(t *testing.T, attestation v1.Image) {
	t.Helper()
	g := NewWithT(t)
	manifest, err := attestation.Manifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Layers).To(HaveLen(2))
	for i, name := range []string{"runner", "kubectl"} {
		layer, err := attestation.LayerByDigest(manifest.Layers[i].Digest)
		g.Expect(err).NotTo(HaveOccurred())
		content, err := layer.Compressed()
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(And(ContainSubstring(`"name":"`+name+`"`), ContainSubstring(billPredicate), ContainSubstring("pkg:golang/std@")))
	}
}
