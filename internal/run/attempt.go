package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
)

// earlierTimeout is how long the objects of an earlier attempt may take to be gone. Pods of it may still be terminating, and other attempts
// load the cluster.
const earlierTimeout = 5 * time.Minute

// removeEarlierAttempt removes what a killed attempt with the id of this run left. A cluster that cannot be searched is not an error: its
// setup reports why.
func (c *conductor) removeEarlierAttempt(ctx context.Context) error {
	if c.RunID == "" || c.Settings.NoCreate {
		return nil
	}
	var failures []error
	for _, cluster := range c.Options.clusters {
		// The id of the run is no secret, so that others can create objects that are named after it. They lose only these.
		found, _ := environment.FindLeftovers(ctx, cluster.Provider.RESTConfig(), c.Namespace)
		if found == nil {
			continue
		}
		for _, leftover := range found.Leftovers {
			if leftover.Run != c.id {
				continue
			}
			_, _ = fmt.Fprintf(c.Out, "removing what an earlier attempt of this run left on %q\n", c.redactor.Cluster(cluster.Name))
			if err := leftover.Remove(ctx, cluster.Provider.RESTConfig(), environment.RemoveOptions{Timeout: cmp.Or(c.CleanupTimeout, earlierTimeout), Controller: c.Settings.Controller}); err != nil {
				failures = append(failures, fmt.Errorf("remove what an earlier attempt of run %s left on %s: %w", c.id, cluster.Name, err))
			}
		}
	}
	return errors.Join(failures...)
}
