package exploration

import (
	"context"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

// createClusterOwner creates the cluster-scoped owner of a round; nil where the run may not.
func (d *Driver) createClusterOwner(ctx context.Context) *client.Object {
	if d.settings.Shared || d.settings.Unsupported[v1alpha1.Admin] != "" {
		return nil
	}
	role := fixtures.ClusterRole(fmt.Sprintf("%s-r%d-owner", d.settings.Run, d.rounds))
	role.SetLabels(d.settings.Labels())
	return d.createdOrNil(ctx, role)
}

// createForeignOwner creates an object in another namespace; nil where the run may not, and for cluster-scoped resources.
func (d *Driver) createForeignOwner(ctx context.Context) *client.Object {
	if d.settings.Shared || d.settings.Unsupported[v1alpha1.Namespace] != "" || d.collection.Namespace == "" {
		return nil
	}
	namespace := fixtures.Namespace(d.settings.Run + "-elsewhere")
	namespace.SetLabels(d.settings.Labels())
	if d.createdOrNil(ctx, namespace) == nil {
		return nil
	}
	object := d.named(d.name("elsewhere"), nil)
	object.SetNamespace(namespace.GetName())
	return d.createdOrNil(ctx, object)
}

// createdOrNil creates an object; nil if that is refused.
func (d *Driver) createdOrNil(ctx context.Context, object *client.Object) *client.Object {
	response := d.own.Create(ctx, object)
	if response.Err != nil {
		return nil // the body is a Status
	}
	return response.Object
}

// removeClusterOwner deletes the cluster-scoped owner of the round until it is gone. A finalizer of another policy does not hold it.
func (a *actor) removeClusterOwner(ctx context.Context) error {
	if a.clusterOwner == nil {
		return nil
	}
	for range cleanupAttempts {
		gone, err := a.removes(ctx, generate.Program{
			{Verb: model.Delete, ClusterOwner: true, Policy: model.PolicyBackground}, {Verb: model.Get, ClusterOwner: true},
		})
		if gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: ClusterRole %q still exists after %d deletes", ErrSkipped, a.clusterOwner.GetName(), cleanupAttempts)
}
