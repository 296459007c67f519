package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

// The contents of the state directory.
const (
	logDir  = "logs"
	certDir = "certificates"
	// userDir contains the kubeconfigs of added users.
	userDir = "users"
	// componentSocket is the socket for stopping and starting components and for static pods.
	componentSocket = "components.sock"
)

// stopTimeout is how long a component may take to terminate before it is killed.
const stopTimeout = 10 * time.Second

// errPortTaken is the error after which a start is retried.
var errPortTaken = errors.New("another process has taken a port")

// instance is a running embedded cluster.
type instance struct {
	name       string
	binaries   string
	version    *version.Version // of the binaries
	settings   settings
	dir        *statedir.Dir
	ca         *certificates.CA
	egress     io.Closer // nil without nodes
	kubeconfig string
	admin      *rest.Config
	adminToken string
	switches   io.Closer // nil until the component socket is served

	mu sync.Mutex
	// components are the running components of the control plane, by name.
	components map[string]controlPlaneComponent
	// killed is the API server that was killed last, and outage reports that it was not started again.
	killed controlPlaneComponent
	outage bool
	// nodes are the nodes that were started, also lost ones.
	nodes []*node.Node
}

// startInstance starts a cluster. If it fails it leaves nothing.
func startInstance(ctx context.Context, of Cluster) (*instance, error) {
	dir, err := statedir.New(statedir.Embedded)
	if err != nil {
		return nil, err
	}
	cluster := &instance{
		name: of.name, binaries: of.binaries, version: of.version, settings: of.settings, dir: dir,
		components: map[string]controlPlaneComponent{},
	}
	if err := cluster.start(ctx); err != nil {
		return nil, errors.Join(explain(ctx, err), cluster.destroy())
	}
	return cluster, nil
}

func (c *instance) start(ctx context.Context) error {
	for _, dir := range []string{logDir, certDir, userDir} {
		if _, err := c.dir.Make(dir); err != nil {
			return err
		}
	}
	var err error
	if c.ca, err = certificates.New(c.dir.Path(certDir)); err != nil {
		return err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	if err := c.startNodes(ctx); err != nil {
		return err
	}
	if err := c.waitUntilReady(ctx); err != nil {
		return err
	}
	c.switches, err = component.Serve(c.dir.Path(componentSocket), c.stoppable(), c.staticPods(), c.auditEvents)
	return err
}

// stoppable returns the components that can be stopped and started while the cluster runs.
func (c *instance) stoppable() map[component.Component]component.Switch {
	stoppable := map[component.Component]component.Switch{component.APIServer: {Stop: c.killAPIServer, Start: c.restartAPIServer}}
	if !c.settings.withoutControllers {
		stoppable[component.ControllerManager] = c.controller(controllerManager, c.startControllerManager)
		stoppable[component.Scheduler] = c.controller(scheduler, c.startScheduler)
	}
	for _, node := range c.nodeList() {
		for part, its := range c.partsOf(node) {
			stoppable[part.On(node.Name)] = its
		}
	}
	return stoppable
}

// staticPods adds and removes static pods of the kubelets, if there is one.
func (c *instance) staticPods() component.StaticPods {
	nodes := c.nodeList()
	if len(nodes) == 0 {
		return component.StaticPods{}
	}
	return component.StaticPods{
		Put: func(name, pod string, manifest []byte) error {
			at := slices.IndexFunc(nodes, func(node *node.Node) bool { return node.Name == name })
			if at < 0 && name != "" {
				return fmt.Errorf("node %s is none of this cluster", name)
			}
			return nodes[max(at, 0)].PutStaticPod(pod, manifest)
		},
		Remove: func(pod string) error {
			var errs []error
			for _, node := range nodes {
				errs = append(errs, node.RemoveStaticPod(pod))
			}
			return errors.Join(errs...)
		},
	}
}

// killAPIServer kills the API server, as a crash would.
func (c *instance) killAPIServer(context.Context) error {
	c.mu.Lock()
	running, runs := c.components[apiServer]
	if runs {
		c.killed, c.outage = running, true
		delete(c.components, apiServer) // its end is expected
	}
	c.mu.Unlock()
	if runs {
		running.Kill()
	}
	return nil
}

// restartAPIServer starts the API server at the same address unless it runs, and waits until it is ready. Controllers that have ended without it are
// started again.
func (c *instance) restartAPIServer(ctx context.Context) error {
	if _, runs := c.started()[apiServer]; !runs {
		if err := c.run(apiServer, c.killed.Command, c.killed.address); err != nil {
			return err
		}
	}
	if err := c.waitUntil(ctx, "the API server", c.apiServerReady); err != nil {
		return err
	}
	return c.endOutage(ctx)
}

// endOutage starts controllers again that have ended without the API server, as the kubelet or systemd does on other clusters. The controller manager
// ends when it was just starting.
func (c *instance) endOutage(ctx context.Context) error {
	for name, start := range map[string]func() error{controllerManager: c.startControllerManager, scheduler: c.startScheduler} {
		if component, runs := c.started()[name]; !runs || component.Alive() == nil {
			continue
		}
		if err := start(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.outage = false
	c.mu.Unlock()
	return c.waitUntilReady(ctx)
}

// controller terminates the controller manager or the scheduler, as an upgrade would, and starts it again and waits until it is healthy. Without
// the controller manager nothing is collected or finalized.
func (c *instance) controller(name string, start func() error) component.Switch {
	return component.Switch{
		Stop: func(ctx context.Context) error {
			stopped, runs := c.started()[name]
			if !runs {
				return nil
			}
			c.mu.Lock()
			delete(c.components, name) // its end is expected
			c.mu.Unlock()
			stopped.Stop(ctx, stopTimeout)
			return nil
		},
		Start: func(ctx context.Context) error {
			if _, runs := c.started()[name]; !runs {
				if err := start(); err != nil {
					return err
				}
			}
			return c.waitUntilReady(ctx)
		},
	}
}

// thenAwaitReady returns a function that starts something and waits until the cluster is ready.
func (c *instance) thenAwaitReady(start func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := start(ctx); err != nil {
			return err
		}
		return c.waitUntilReady(ctx)
	}
}

func (c *instance) log(name string) string { return c.dir.Path(logDir, name+".log") }

// apiServerAddress is the address and port of the API server after it was started.
func (c *instance) apiServerAddress() string { return c.started()[apiServer].address }

// writeAdmin writes the kubeconfig of the administrator.
func (c *instance) writeAdmin() error {
	kubeconfig, err := c.writeKubeconfigOf("", admin, &clientcmdapi.AuthInfo{Token: c.adminToken})
	if err != nil {
		return err
	}
	c.kubeconfig = kubeconfig
	if c.admin, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig of its administrator: %w", err)
	}
	return nil
}

// writeKubeconfig writes a kubeconfig for a user in groups to a directory in the state directory, and returns its path. Its only context is
// the cluster's name.
func (c *instance) writeKubeconfig(dir, user string, groups ...string) (string, error) {
	pair, err := c.ca.Client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfigOf(dir, user, &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key})
}

// writeKubeconfigOf writes a kubeconfig for a user with these credentials.
func (c *instance) writeKubeconfigOf(dir, user string, credentials *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	cluster := &clientcmdapi.Cluster{Server: "https://" + c.apiServerAddress(), CertificateAuthorityData: c.ca.Certificate()}
	if err := component.WriteSocket(cluster, c.dir.Path(componentSocket)); err != nil {
		return "", err
	}
	config.Clusters[c.name] = cluster
	config.AuthInfos[user] = credentials
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: user}
	config.CurrentContext = c.name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return c.dir.Write(filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(user)+".kubeconfig"), content)
}

// explain returns why a start failed: it was canceled, a port was taken (which only the logs of components contain), or another reason.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// destroy ends everything and removes the state directory. It kills the components, because nothing of their state is kept. If something of
// the node remains on the host, it keeps the state directory for Sweep.
func (c *instance) destroy() error {
	if c.switches != nil {
		_ = c.switches.Close() // the socket is no longer used
	}
	var left []error
	for _, node := range c.nodeList() {
		left = append(left, node.Destroy())
	}
	if c.settings.nodes > 0 {
		left = append(left, node.Sweep(c.dir.Path())) // also of nodes that failed to start
	}
	if c.egress != nil {
		_ = c.egress.Close() // the socket is no longer used
	}
	for _, component := range c.started() {
		component.Kill()
	}
	if err := errors.Join(left...); err != nil {
		return err
	}
	return c.dir.Remove()
}
