package framework

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DryRunCreate asks what creating an object from a manifest would make, and that nothing is. Its name gets the spec's ending.
func (c *Cluster) DryRunCreate(ctx context.Context, manifest *Object, options ...ObjectOption) Response {
	ginkgo.GinkgoHelper()
	return c.must(c.TryDryRunCreate(ctx, manifest, options...))
}

// TryDryRunCreate is DryRunCreate, also returning a refusal. The spec is skipped where a webhook of the cluster's has
// side effects, as nothing can be asked then.
func (c *Cluster) TryDryRunCreate(ctx context.Context, manifest *Object, options ...ObjectOption) Response {
	ginkgo.GinkgoHelper()
	response := c.judge(ctx, c.client.DryRunCreate(ctx, c.prepare(ctx, manifest, options)))
	if apierrors.IsBadRequest(response.Err) && strings.Contains(response.Message(), "does not support dry run") {
		ginkgo.Skip(response.Message())
	}
	return response
}

// NeverThere is an object of a manifest's kind that nobody has created, under a name of the spec's own.
func (c *Cluster) NeverThere(ctx context.Context, manifest *Object) *Object {
	ginkgo.GinkgoHelper()
	return c.prepare(ctx, manifest, nil)
}
