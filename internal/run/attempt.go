package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
)

// removeEarlierAttempt removes what a killed attempt with the id of this run left. A cluster that cannot be searched is not an error: its
// setup reports why.
func (o *Options) removeEarlierAttempt(ctx context.Context) error {
	if o.RunID == "" || o.Settings.NoCreate {
		return nil
	}
	var failures []error
	for _, cluster := range o.clusters {
		for _, leftover := range o.leftovers(ctx, cluster) {
			if leftover.Run != o.id {
				continue
			}
			_, _ = fmt.Fprintf(o.Out, "removing what an earlier attempt of this run left on %q\n", cluster.Name)
			if err := leftover.Remove(ctx, cluster.Provider.RESTConfig(), o.cleanupTimeout(), false); err != nil {
				failures = append(failures, fmt.Errorf("remove what an earlier attempt of run %s left on %s: %w", o.id, cluster.Name, err))
			}
		}
	}
	return errors.Join(failures...)
}

// leftovers returns what runs left on a cluster, as far as the credentials allow to find it.
func (o *Options) leftovers(ctx context.Context, cluster clusters.Cluster) []environment.Leftover {
	config := cluster.Provider.RESTConfig()
	found, err := []environment.Leftover(nil), error(nil)
	if o.Namespace != "" {
		found, err = environment.LeftoversIn(ctx, config, o.Namespace)
	} else {
		found, err = environment.Leftovers(ctx, config)
	}
	if err != nil {
		return nil
	}
	return found
}
