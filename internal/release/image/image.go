package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/deletion-conformance/deletion-conformance/internal/release/bill"
)

const (
	// user is the user and the group of the runner in the image. The number lets a kubelet check that it is not root.
	user = "65532:65532"
	// repository is the address of the source.
	repository = "https://github.com/deletion-conformance/deletion-conformance"
)

// source is what the image is made from.
type source struct {
	version, commit string
	date            time.Time
}

// platformImage is the image of one platform, with the bills of materials of its programs.
type platformImage struct {
	v1.Image
	platform v1.Platform
	bills    []v1.Layer
}

// image returns the image with the programs of a platform.
func (s source) image(platform v1.Platform, programs []program) (platformImage, error) {
	base, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant, Created: v1.Time{Time: s.date},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/bin/runner"}, Env: []string{"PATH=/bin"}, User: user, WorkingDir: "/", Labels: s.labels(),
		},
	})
	if err != nil {
		return platformImage{}, err
	}
	made := platformImage{platform: platform}
	layers := []mutate.Addendum{}
	for _, program := range programs {
		layer, err := program.layer(s.date)
		if err != nil {
			return platformImage{}, err
		}
		layers = append(layers, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{
			Created: v1.Time{Time: s.date}, CreatedBy: "make image", Comment: program.name + " " + program.version,
		}})
	}
	if made.Image, err = mutate.Append(mutate.ConfigMediaType(base, types.OCIConfigJSON), layers...); err != nil {
		return platformImage{}, err
	}
	digest, err := made.Digest()
	if err != nil {
		return platformImage{}, err
	}
	for _, program := range programs {
		statement, err := program.statement(digest)
		if err != nil {
			return platformImage{}, err
		}
		made.bills = append(made.bills, statement)
	}
	return made, nil
}

// labels are those of the OCI image specification.
func (s source) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "deletion-conformance",
		"org.opencontainers.image.description": "Tests whether a Kubernetes cluster handles deletion correctly",
		"org.opencontainers.image.source":      repository,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     s.version,
		"org.opencontainers.image.created":     s.date.Format(time.RFC3339),
	}
	if s.commit != "" {
		labels["org.opencontainers.image.revision"] = s.commit
	}
	return labels
}

// layer returns a layer that contains only the program.
func (p program) layer(date time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, entry := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755, ModTime: date},
		{Typeflag: tar.TypeReg, Name: "bin/" + p.name, Mode: 0o755, ModTime: date, Size: int64(len(content))},
	} {
		if err := writer.WriteHeader(&entry); err != nil {
			return nil, err
		}
	}
	if _, err := writer.Write(content); err != nil { // part of the last entry
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

const (
	// statementType is the media type of a statement about an image, and billPredicate the type of a bill of materials in one.
	statementType = types.MediaType("application/vnd.in-toto+json")
	billPredicate = "https://cyclonedx.org/bom"
)

// statement returns the bill of materials of the program as a statement about the image (in-toto).
func (p program) statement(of v1.Hash) (v1.Layer, error) {
	var predicate bytes.Buffer
	if err := bill.Write(&predicate, p.path, p.version); err != nil {
		return nil, err
	}
	content, err := json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"name": p.name, "digest": map[string]string{of.Algorithm: of.Hex}}},
		"predicateType": billPredicate,
		"predicate":     json.RawMessage(predicate.Bytes()),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the bill of materials of %s: %w", p.name, err)
	}
	return static.NewLayer(content, statementType), nil
}

// index returns the image of all platforms. The bills of materials of each platform are in a manifest for an unknown platform, as BuildKit
// does it, which container runtimes ignore and scanners read.
func (s source) index(images []platformImage) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var bills []mutate.IndexAddendum
	for _, image := range images {
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image.Image, Descriptor: v1.Descriptor{Platform: &image.platform}})
		attached, err := image.attestation()
		if err != nil {
			return nil, err
		}
		bills = append(bills, mutate.IndexAddendum{Add: attached, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"},
			Annotations: map[string]string{
				"vnd.docker.reference.digest": digest.String(), "vnd.docker.reference.type": "attestation-manifest",
			},
		}})
	}
	return mutate.AppendManifests(index, bills...), nil
}

// attestation returns the manifest with the bills of materials.
func (i platformImage) attestation() (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err := mutate.ConfigFile(base, &v1.ConfigFile{OS: "unknown", Architecture: "unknown", RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return nil, err
	}
	var layers []mutate.Addendum
	for _, bill := range i.bills {
		layers = append(layers, mutate.Addendum{
			Layer: bill, MediaType: statementType, Annotations: map[string]string{"in-toto.io/predicate-type": billPredicate},
		})
	}
	return mutate.Append(base, layers...)
}
