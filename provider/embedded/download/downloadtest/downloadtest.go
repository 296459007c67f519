// Package downloadtest serves releases of Kubernetes on loopback, as registry.k8s.io and dl.k8s.io do.
package downloadtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"
)

// Server is a registry, and a file server with the archives for nodes. It can be made to fail.
type Server struct {
	// Address is its host and port: a mirror.
	Address string
	// Records are the digests of the releases that were added, in the form of releases.yaml.
	Records map[string]Record

	mu       sync.Mutex
	files    map[string][]byte
	layers   map[string]bool // paths of the layers with the binaries
	requests []*http.Request
	fault    Fault
}

// Fault is a wrong answer of the server to a request for a layer with a binary, or for an archive. It gets the right handler.
type Fault func(w http.ResponseWriter, r *http.Request, right http.Handler)

// Record is the record of one release.
type Record struct {
	Images map[string]string `json:"images"`
	Nodes  map[string]string `json:"nodes,omitempty"`
}

// New starts a server until the test ends.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{Records: map[string]Record{}, files: map[string][]byte{}, layers: map[string]bool{}}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	serving := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		file, found := s.files[r.URL.Path]
		s.mu.Unlock()
		switch {
		case found:
			_, _ = w.Write(file)
		default:
			images.ServeHTTP(w, r)
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		fault := s.fault
		if r.Method != http.MethodGet || !s.layers[r.URL.Path] {
			fault = nil
		}
		s.mu.Unlock()
		if fault == nil {
			serving.ServeHTTP(w, r)
			return
		}
		fault(w, r, serving)
	}))
	t.Cleanup(server.Close)
	s.Address = strings.TrimPrefix(server.URL, "http://")
	return s
}

// Break makes the server answer with a fault; nil mends it.
func (s *Server) Break(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Beginning is how many bytes Cut and Hold send of what is asked for.
const Beginning = 100_000

// Cut sends the beginning of what is asked for, and closes the connection.
func Cut(w http.ResponseWriter, r *http.Request, right http.Handler) {
	right.ServeHTTP(&beginning{ResponseWriter: w, left: Beginning}, r)
	panic(http.ErrAbortHandler)
}

// Hold is Cut with a connection that stays open. It calls a function when it sends nothing more.
func Hold(held func()) Fault {
	return func(w http.ResponseWriter, r *http.Request, right http.Handler) {
		right.ServeHTTP(&beginning{ResponseWriter: w, left: Beginning}, r)
		held()
		<-r.Context().Done()
	}
}

// Other sends something else.
func Other(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	_, _ = w.Write([]byte("something else"))
}

// beginning is the beginning of a response.
type beginning struct {
	http.ResponseWriter
	left int
}

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	if _, err := b.ResponseWriter.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), http.NewResponseController(b.ResponseWriter).Flush()
}

// Requests returns the requests since the last call.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// YAML returns the records as the file that is part of the runner.
func (s *Server) YAML(t *testing.T) []byte {
	t.Helper()
	content, err := yaml.Marshal(s.Records)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// AddImage adds the image of a repository for a platform, with a binary, to a release.
func (s *Server) AddImage(t *testing.T, version, repository string, platform v1.Platform, binary []byte) {
	t.Helper()
	image, layer := imageOf(t, platform, repository, binary)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	reference, err := name.ParseReference(fmt.Sprintf("%s/%s:v%s", s.Address, repository, version))
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reference, index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	record := s.Records[version]
	if record.Images == nil {
		record.Images = map[string]string{}
	}
	record.Images[repository] = digest.String()
	s.Records[version] = record
	s.Requests() // of this
	s.mu.Lock()
	defer s.mu.Unlock()
	s.layers["/v2/"+repository+"/blobs/"+layer.String()] = true
}

// AddNode adds the archive for nodes of an architecture, with a kubelet, to a release.
func (s *Server) AddNode(t *testing.T, version, architecture string, kubelet []byte) {
	t.Helper()
	archive := archiveOf(t, "kubernetes/node/bin/kubelet", kubelet)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprintf("/v%s/kubernetes-node-linux-%s.tar.gz", version, architecture)
	s.files[path], s.layers[path] = archive, true
	record := s.Records[version]
	record.Nodes = map[string]string{architecture: digest.SHA512.FromBytes(archive).String()}
	s.Records[version] = record
}

// imageOf returns an image, and the digest of its layer with the binary. There is a small layer below it, as in Kubernetes' images.
func imageOf(t *testing.T, platform v1.Platform, name string, binary []byte) (v1.Image, v1.Hash) {
	t.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture})
	if err != nil {
		t.Fatal(err)
	}
	layers := []v1.Layer{layerOf(t, "etc/passwd", []byte("root:x:0:0::/:/bin/false\n")), layerOf(t, "usr/local/bin/"+name, binary)}
	if image, err = mutate.AppendLayers(image, layers...); err != nil {
		t.Fatal(err)
	}
	digest, err := layers[1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return image, digest
}

// layerOf returns a layer with one file.
func layerOf(t *testing.T, path string, content []byte) v1.Layer {
	t.Helper()
	archive := archiveOf(t, path, content)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// archiveOf returns a compressed archive with one file.
func archiveOf(t *testing.T, path string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(compressed)
	if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
