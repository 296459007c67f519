package main

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	registryname "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

func TestPush_ExistingVersion(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/example/runner"
	_, index := made(t)

	for range 2 {
		pushed, err := push(t.Context(), repository, "v1.2.3", index)
		g.Expect(err).NotTo(HaveOccurred())
		digest, err := registryname.NewDigest(pushed)
		g.Expect(err).NotTo(HaveOccurred())
		found, err := remote.Index(digest)
		g.Expect(err).NotTo(HaveOccurred())
		manifests, err := found.IndexManifest()
		g.Expect(err).NotTo(HaveOccurred())
		for _, manifest := range manifests.Manifests {
			_, err := remote.Get(digest.Context().Digest(manifest.Digest.String()))
			g.Expect(err).NotTo(HaveOccurred())
		}
	}

	_, err := push(t.Context(), repository, "v1.2.3", empty.Index)
	g.Expect(err).To(MatchError(ContainSubstring("v1.2.3 exists and has the digest sha256:")))
	_, err = push(t.Context(), repository, "no tag", index)
	g.Expect(err).To(MatchError(ContainSubstring("no tag")))
}
