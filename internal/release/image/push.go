package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	registryname "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes an image to a repository, and returns its name with the digest. It does not replace another image of this version.
func push(ctx context.Context, repository, version string, index v1.ImageIndex) (string, error) {
	tag, err := registryname.NewTag(repository + ":" + version)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if found, err := remote.Head(tag, options...); err == nil && found.Digest != digest {
		return "", fmt.Errorf("%s exists and has the digest %s", tag, found.Digest)
	}
	return tag.Context().Digest(digest.String()).Name(), remote.WriteIndex(tag, index, options...)
}
