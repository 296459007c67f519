package build

import (
	"context"
	"fmt"
)

// apiServerAlone is the binary that holds etcd and the API server, for those who want to begin before the rest is there: most of
// a first build is for what all components are made of.
func apiServerAlone() target {
	return target{
		name: "api-server", title: "the API server of Kubernetes", folder: ".", tags: []string{"api_server_alone"}, below: "api-server-alone",
		links: []string{"etcd", "kube-apiserver"}, work: 8, stamp: ".built-from",
	}
}

// APIServer makes sure that etcd and the API server of a version are there of which Kubernetes was never built, and returns the
// directory that holds them until Kubernetes has returned. Where it was built before, nothing is done, and the directory is empty.
// It fails as Kubernetes does.
func APIServer(ctx context.Context, options Options) (string, error) {
	first, err := options.build(apiServerAlone())
	if err != nil {
		return "", err
	}
	if _, err := Find(options.Into, first.version.String()); err == nil {
		return "", nil
	}
	if err := first.run(ctx); err != nil {
		return "", fmt.Errorf("build %s %s: %w", first.title, first.version, err)
	}
	return first.dir, nil
}
