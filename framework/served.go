package framework

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served returns the kinds that the server serves, for a behavior that each of them shows by itself. It skips the spec when there is none.
func (c *Cluster) Served(ctx context.Context, kinds ...func(name string) *Object) []func(name string) *Object {
	ginkgo.GinkgoHelper()
	seen := map[schema.GroupVersionKind]bool{} // ConfigMaps may be replaced by another of the kinds
	served := slices.DeleteFunc(slices.Clone(kinds), func(kind func(name string) *Object) bool {
		like := c.session.Harness.StandInFor(kind("any"))
		_, err := c.session.Harness.Mapping(like)
		if meta.IsNoMatchError(err) || seen[like.GroupVersionKind()] {
			return true
		}
		c.mustServe(ctx, like, err)
		seen[like.GroupVersionKind()] = true
		return false
	})
	if len(served) == 0 {
		c.CollectionOf(ctx, kinds[0]("any")) // which skips the spec
	}
	return served
}

// FirstServed returns the first of several kinds that the server serves, for a behavior that any of them shows.
func (c *Cluster) FirstServed(ctx context.Context, kinds ...func(name string) *Object) func(name string) *Object {
	ginkgo.GinkgoHelper()
	return c.Served(ctx, kinds...)[0]
}
