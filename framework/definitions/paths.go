package definitions

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// The paths at which a server lists paths.
const (
	// Root lists all paths of the server.
	Root = "/"
	// OpenAPI lists the API versions that the server describes.
	OpenAPI = "/openapi/v3"
)

// AwaitPaths waits until the paths that the server lists match. The spec is skipped when the credentials may not read them.
func AwaitPaths(ctx context.Context, c *framework.Cluster, list string, paths types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() []string { return listedPaths(ctx, c, list) }).WithPolling(discoveryPolling).Should(
		paths, "the paths that "+list+" lists")
}

// listedPaths returns the paths that the server lists: a list, or the keys of an object.
func listedPaths(ctx context.Context, c *framework.Cluster, list string) []string {
	ginkgo.GinkgoHelper()
	response := c.Session().Harness.Send(ctx, client.Request{Method: http.MethodGet, Path: list})
	if response.Forbidden() {
		ginkgo.Skip("missing permission: get " + list)
	}
	framework.Require(c.Check(ctx, response))
	var keys struct {
		Paths map[string]any `json:"paths"`
	}
	var elements struct {
		Paths []string `json:"paths"`
	}
	if json.Unmarshal(response.Body, &elements) == nil {
		return elements.Paths
	}
	if err := json.Unmarshal(response.Body, &keys); err != nil {
		ginkgo.Fail(fmt.Sprintf("read the response to %s: %v", response.Request, err))
	}
	return slices.Sorted(maps.Keys(keys.Paths))
}
