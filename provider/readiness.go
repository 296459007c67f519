package provider

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is the time between two questions whether a part is ready.
const pollInterval = 30 * time.Millisecond

// alive is nil while every part runs.
func (c *localCluster) alive() error {
	for _, server := range c.servers {
		if err := server.Alive(); err != nil {
			return err
		}
	}
	for _, controller := range c.controllers {
		if err := controller.process.Alive(); err != nil {
			return err
		}
	}
	if c.node != nil {
		return c.node.Alive()
	}
	return nil
}

// waitUntilReady waits until every part answers. It is over at once when one of them ends.
func (c *localCluster) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("not ready within %s", readyTime))
	defer cancel()
	for {
		if err := c.alive(); err != nil {
			return err
		}
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the control plane: %w; at last: %w", context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

// ready asks every part once.
func (c *localCluster) ready(ctx context.Context) error {
	if err := answers(ctx, c.admin, "/readyz"); err != nil {
		return err
	}
	for _, controller := range c.controllers {
		if err := answers(ctx, controller.health, "/healthz"); err != nil {
			return err
		}
	}
	if c.node != nil && c.node.Running() {
		return c.nodeReady(ctx)
	}
	return nil
}
