package download

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// servers are the registry with the images, and the URL of the server with the archives for nodes.
type servers struct{ registry, files string }

var official = servers{registry: "registry.k8s.io", files: "https://dl.k8s.io"}

// CheckMirror returns nil when a mirror is written as Options describe.
func CheckMirror(mirror string) error {
	_, err := serversOf(mirror)
	return err
}

// serversOf returns the official servers, or the mirror: HOST[:PORT][/PATH] of both.
func serversOf(mirror string) (servers, error) {
	if mirror == "" {
		return official, nil
	}
	repository, err := name.NewRepository(path.Join(mirror, images[0].repository), name.StrictValidation)
	if err != nil || strings.Contains(mirror, "://") || !strings.HasPrefix(mirror, repository.RegistryStr()) {
		return servers{}, fmt.Errorf("mirror %q is not a registry: write HOST[:PORT][/PATH], such as registry.example.com/kubernetes", mirror)
	}
	return servers{registry: mirror, files: repository.Scheme() + "://" + mirror}, nil
}

// connectTimeout limits how long it takes to notice that a server cannot be reached, and answerTimeout that it does not answer.
const (
	connectTimeout = 5 * time.Second
	answerTimeout  = 15 * time.Second
)

// connections are HTTP connections that give up soon.
func connections() *http.Transport {
	connections := http.DefaultTransport.(*http.Transport).Clone()
	connections.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	connections.TLSHandshakeTimeout = connectTimeout
	connections.ResponseHeaderTimeout = answerTimeout
	return connections
}

// image downloads the binary of an image.
func (d *downloader) image(ctx context.Context, wanted image) error {
	digest := d.release.Images[wanted.repository]
	if digest != "" && fileExists(filepath.Join(d.Into, folderOf(digest), wanted.binary)) { // of another version
		return d.link(folderOf(digest), wanted.binary)
	}
	repository, err := name.NewRepository(d.servers.registry + "/" + wanted.repository)
	if err != nil {
		return err
	}
	credentials, err := authn.Resolve(ctx, authn.DefaultKeychain, repository)
	if err != nil {
		return fmt.Errorf("find the credentials for %s: %w", repository, err)
	}
	authorized, err := transport.NewWithContext(ctx, repository.Registry, credentials, connections(), []string{repository.Scope(transport.PullScope)})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", repository.RegistryStr(), err)
	}
	if digest == "" {
		if digest, err = signedDigest(ctx, repository.Tag("v"+d.Version), authorized); err != nil {
			return err
		}
	}
	reference, platform := repository.Digest(digest.String()), v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	layers, err := layersOf(ctx, reference, platform, authorized)
	if err != nil {
		return fmt.Errorf("find the image %s for %s/%s: %w", reference, platform.OS, platform.Architecture, err)
	}
	for _, layer := range layers { // the one with the binary is the largest
		file := file{
			url:    fmt.Sprintf("%s://%s/v2/%s/blobs/%s", repository.Scheme(), repository.RegistryStr(), repository.RepositoryStr(), layer.Digest),
			digest: asDigest(layer.Digest), size: layer.Size,
		}
		found, err := d.part(ctx, &http.Client{Transport: authorized}, file, folderOf(digest), wanted.binary)
		if err != nil || found {
			return err
		}
	}
	return fmt.Errorf("the image %s contains no %s", reference, wanted.binary)
}

// folderOf is the name of the directory for the binaries of an image or archive with a digest.
func folderOf(digest digest.Digest) string {
	return digest.Algorithm().String() + "-" + digest.Encoded() + "-" + runtime.GOARCH
}

// layersOf returns the layers of an image, the largest first.
func layersOf(ctx context.Context, reference name.Digest, platform v1.Platform, authorized http.RoundTripper) ([]v1.Descriptor, error) {
	image, err := remote.Image(reference, remote.WithContext(ctx), remote.WithPlatform(platform), remote.WithTransport(authorized))
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		return nil, fmt.Errorf("it is for %s/%s", config.OS, config.Architecture)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(slices.Values(manifest.Layers), func(a, b v1.Descriptor) int { return int(b.Size - a.Size) }), nil
}

// node downloads the kubelet.
func (d *downloader) node(ctx context.Context) error {
	digest := d.release.node()
	file := file{
		url:    fmt.Sprintf("%s/v%s/kubernetes-node-linux-%s.tar.gz", d.servers.files, d.Version, runtime.GOARCH),
		digest: digest,
	}
	found, err := d.part(ctx, &http.Client{Transport: connections()}, file, folderOf(digest), kubelet)
	if err == nil && !found {
		err = fmt.Errorf("%s contains no %s", file.url, kubelet)
	}
	return err
}

func asDigest(hash v1.Hash) digest.Digest {
	return digest.NewDigestFromEncoded(digest.Algorithm(hash.Algorithm), hash.Hex)
}
