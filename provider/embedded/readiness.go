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
	// pollInterval is the time between readiness checks.
	pollInterval = 30 * time.Millisecond
	// readyTimeout is how long a component may take to respond. Components need two seconds on an idle machine.
	readyTimeout = 90 * time.Second
)

// waitUntil waits until a check succeeds. It fails at once when a component ends.
func (c *instance) waitUntil(ctx context.Context, what string, check func(context.Context) error) error {
	missing := errors.New("not checked")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.alive(ctx); err != nil {
			return false, err
		}
		missing = check(ctx)
		return missing == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("wait up to %s for %s: %w; last error: %w", readyTimeout, what, err, missing)
	}
	return err
}

// waitUntilReady waits until every component responds.
func (c *instance) waitUntilReady(ctx context.Context) error {
	return c.waitUntil(ctx, "the control plane", c.ready)
}

// started returns the running components of the control plane.
func (c *instance) started() map[string]controlPlaneComponent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.components)
}

// alive returns nil while every component runs. Controllers may end without an API server.
func (c *instance) alive(ctx context.Context) error {
	c.mu.Lock()
	outage := c.outage
	c.mu.Unlock()
	for name, component := range c.started() {
		mayEnd := outage && (name == controllerManager || name == scheduler)
		if err := component.Alive(); err != nil && !mayEnd {
			return err
		}
	}
	for _, node := range c.nodeList() {
		if err := node.Alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ready checks every component once. The API server reports the health of etcd.
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
	for _, node := range c.nodeList() {
		if err := c.nodeReady(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

func (c *instance) apiServerReady(ctx context.Context) error {
	return answers(ctx, c.admin, "/readyz")
}

// etcdListens returns nil when etcd accepts connections. An API server that starts before that retries slowly.
func (c *instance) etcdListens(context.Context) error {
	connection, err := net.Dial("unix", c.dir.Path(etcdSocket))
	if err != nil {
		return err
	}
	return connection.Close()
}

// answers returns nil when a server returns 200 for a path.
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
		return fmt.Errorf("get %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %[2]s from %[1]s: %[3]s", config.Host, path, response.Status)
	}
	return nil
}
