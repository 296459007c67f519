// Package protocols shows the cluster to clients that ask for other media types, or that speak another version of HTTP.
package protocols

import (
	"context"
	"errors"
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Accepting is the same cluster with responses of a media type: framework.TableJSON, MetadataJSON or MetadataListJSON.
func Accepting(c *framework.Cluster, mediaType string) *framework.Cluster {
	ginkgo.GinkgoHelper()
	accepting, err := c.Through(func(connection *client.Client) (*client.Client, error) { return connection.Accepting(mediaType) })
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return accepting
}

// Over is the same cluster over one version of HTTP: framework.HTTP1 or HTTP2. The spec is skipped where the server, or a proxy in front of
// it, does not speak that.
func Over(ctx context.Context, c *framework.Cluster, protocol string) *framework.Cluster {
	ginkgo.GinkgoHelper()
	over, err := c.Through(func(connection *client.Client) (*client.Client, error) { return connection.Over(ctx, protocol) })
	if spoken := client.OtherProtocol(""); errors.As(err, &spoken) {
		ginkgo.Skip(fmt.Sprintf("%v, and not %s", err, protocol))
	}
	c.Check(ctx, framework.Response{Request: "connect by " + protocol, Err: err})
	return over
}
