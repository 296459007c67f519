package build

import (
	"context"
	"fmt"
)

// apiServerAlone is the binary of etcd and the API server, which can be used before the rest is built. It shares most of its packages with
// the other components.
func apiServerAlone() target {
	return target{
		name: "api-server", title: "the API server of Kubernetes", folder: ".", tags: []string{"api_server_alone"}, below: "api-server-alone",
		links: []string{"etcd", "kube-apiserver"}, work: 8, stamp: ".built-from",
	}
}

// APIServer builds etcd and the API server of a version of which Kubernetes was never built, and returns their directory, which exists
// until Kubernetes has returned. If Kubernetes was built before, it does nothing and returns an empty directory. It fails as Kubernetes
// does.
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
