package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	// pollInterval is the time between two questions whether a component is ready.
	pollInterval = 30 * time.Millisecond
	// readyTimeout is how long a component may take to answer. Components answer in two seconds on an idle machine.
	readyTimeout = 90 * time.Second
)

// waitUntil waits until a check finds nothing missing. It is over at once when a component ends.
func (c *instance) waitUntil(ctx context.Context, what string, check func(context.Context) error) error {
	missing := errors.New("it was not asked")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.alive(ctx); err != nil {
			return false, err
		}
		missing = check(ctx)
		return missing == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("wait up to %s for %s: %w; at last: %w", readyTimeout, what, err, missing)
	}
	return err
}

// waitUntilReady waits until every component answers.
func (c *instance) waitUntilReady(ctx context.Context) error {
	return c.waitUntil(ctx, "the control plane", c.ready)
}

// started are the components of the control plane that were started and not stopped.
func (c *instance) started() map[string]controlPlaneComponent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.components)
}

// alive is nil while every component runs.
func (c *instance) alive(ctx context.Context) error {
	for _, component := range c.started() {
		if err := component.Alive(); err != nil {
			return err
		}
	}
	if c.node != nil {
		return c.node.Alive(ctx)
	}
	return nil
}

// ready asks every component once. The API server answers for etcd.
func (c *instance) ready(ctx context.Context) error {
	if err := c.apiServerReady(ctx); err != nil {
		return err
	}
	started := c.started()
	for _, name := range []string{controllerManager, scheduler} {
		component, runs := started[name]
		if !runs {
			continue
		}
		if err := answers(ctx, c.health(component), "/healthz"); err != nil {
			return err
		}
	}
	if c.node != nil {
		return c.nodeReady(ctx)
	}
	return nil
}

func (c *instance) apiServerReady(ctx context.Context) error {
	return answers(ctx, c.admin, "/readyz")
}

// etcdListens is nil when etcd takes connections: the API server is patient with one that does, and slow to come back to
// one that does not.
func (c *instance) etcdListens(context.Context) error {
	connection, err := net.Dial("unix", c.dir.Path(etcdSocket))
	if err != nil {
		return err
	}
	return connection.Close()
}

// answers asks a server for a path and is nil when it says 200.
func answers(ctx context.Context, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	defer client.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s for %s: %s", config.Host, path, response.Status)
	}
	return nil
}
