package download

import (
	_ "embed" // of the digests
	"fmt"
	"runtime"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// image is an official image that contains a binary.
type image struct {
	// repository is its name in the registry, and binary the file's.
	repository, binary string
}

// images are those of a control plane, and kubectl's.
var images = []image{
	{"etcd", "etcd"},
	{"kube-apiserver", "kube-apiserver"},
	{"kube-controller-manager", "kube-controller-manager"},
	{"kube-scheduler", "kube-scheduler"},
	{"kubectl", "kubectl"},
}

const kubelet = "kubelet"

// release is what is known of a release before anything is downloaded.
type release struct {
	// Images are the digests of the images, by repository.
	Images map[string]digest.Digest `json:"images"`
	// Nodes are the digests of the archive with the kubelet, by architecture in Go's notation.
	Nodes map[string]digest.Digest `json:"nodes"`
}

// node returns the digest of the archive for nodes of this machine's architecture; empty when it is not recorded.
func (r release) node() digest.Digest { return r.Nodes[runtime.GOARCH] }

// recorded are the digests of releases, by version. Their sources are in the file. Images of other versions must have a signature.
//
//go:embed releases.yaml
var recorded []byte

// records reads the recorded releases.
func records(file []byte) (map[string]release, error) {
	var releases map[string]release
	if err := yaml.UnmarshalStrict(file, &releases); err != nil {
		return nil, fmt.Errorf("read the recorded releases: %w", err)
	}
	for name, release := range releases {
		for _, image := range images {
			if err := release.Images[image.repository].Validate(); err != nil {
				return nil, fmt.Errorf("the recorded digest of %s %s: %w", image.repository, name, err)
			}
		}
		for architecture, digest := range release.Nodes {
			if err := digest.Validate(); err != nil {
				return nil, fmt.Errorf("the recorded digest of the archive for nodes %s of %s: %w", architecture, name, err)
			}
		}
	}
	return releases, nil
}

// releaseOf returns what is recorded of a version. Of one that is not recorded, only etcd is known: that of the newest recorded version
// before it, because every etcd serves some versions of Kubernetes.
func releaseOf(wanted string) (release, error) {
	releases, err := records(recorded)
	if err != nil {
		return release{}, err
	}
	if found, ok := releases[wanted]; ok {
		return found, nil
	}
	asked, err := version.ParseSemantic(wanted)
	if err != nil {
		return release{}, err
	}
	var before *version.Version
	for name := range releases {
		found := version.MustParseSemantic(name)
		if found.LessThan(asked) && (before == nil || before.LessThan(found)) {
			before = found
		}
	}
	if before == nil {
		return release{}, fmt.Errorf("it is older than every version that this runner can download")
	}
	etcd := images[0].repository
	return release{Images: map[string]digest.Digest{etcd: releases[before.String()].Images[etcd]}}, nil
}
