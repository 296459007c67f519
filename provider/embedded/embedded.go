// Package embedded runs clusters of unmodified Kubernetes as processes on this machine.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

const (
	defaultName = "embedded"
	// attempts limits how often a cluster is started when its port was taken meanwhile.
	attempts = 3
	// sweepTimeout is how long the killed processes of a stale cluster may take to end.
	sweepTimeout = 10 * time.Second
)

// Cluster is a cluster on this machine: unmodified Kubernetes as processes of the runner. It needs neither root nor containers, listens
// only on loopback, and stores everything in one temporary directory. It leaves nothing behind, even if the runner is killed: its processes
// end within seconds, and the next start (or Sweep) removes the directory. Any number of clusters can run in parallel.
//
// Every request needs a token or a client certificate that only the directory's owner can read; etcd listens on a socket in that directory.
//
// The methods are not safe for concurrent use.
type Cluster struct {
	name     string
	binaries string
	version  *version.Version // of the binaries; nil before Create
	settings settings
	running  *instance // nil while there is no cluster
}

var _ provider.Created = &Cluster{}

// Option configures an embedded cluster.
type Option func(*settings)

type settings struct {
	withoutControllers bool
	auditLog           string
	apiServerFlags     []string
	controllerFlags    []string
	nodes              int
	images             Images                      // of the nodes
	archives           []string                    // files with more images
	unsupported        map[v1alpha1.Feature]string // a more precise reason than the other settings give
}

// WithoutControllers omits the controller manager and the scheduler: only an API server and its storage run. Namespaces get no default
// ServiceAccount, and nothing is collected, scheduled or finalized.
func WithoutControllers() Option {
	return func(s *settings) { s.withoutControllers = true }
}

// WithAuditLog makes the API server write the metadata of every request to a file after the response, one JSON event a line. The file is
// kept when the cluster is destroyed.
func WithAuditLog(path string) Option {
	return func(s *settings) { s.auditLog = path }
}

// WithAPIServerFlags adds flags of kube-apiserver, such as the file of an admission configuration, to configure it like a production
// cluster.
func WithAPIServerFlags(flags ...string) Option {
	return func(s *settings) { s.apiServerFlags = append(s.apiServerFlags, flags...) }
}

// WithControllerManagerFlags adds flags of kube-controller-manager, such as the number of workers of a controller.
func WithControllerManagerFlags(flags ...string) Option {
	return func(s *settings) { s.controllerFlags = append(s.controllerFlags, flags...) }
}

// MaxNodes is the largest number of nodes.
const MaxNodes = 2

// WithNodes adds up to MaxNodes real nodes: a kubelet and containerd each, with their own processes, mounts, interfaces and addresses that
// are not visible on this machine. NodeSupported reports whether the machine supports it. The nodes have the images preloaded and cannot
// reach a registry; pods can reach only each other, the nodes and the API server, which reaches them and the Services for them.
func WithNodes(count int, images Images) Option {
	return func(s *settings) { s.nodes, s.images = count, images }
}

// WithImageArchives adds the images of archives to those of the node: OCI archives, or archives as `docker save` writes them.
func WithImageArchives(files ...string) Option {
	return func(s *settings) { s.archives = append(s.archives, files...) }
}

// Unsupported sets why the cluster does not support features, if there is a more precise reason than its options.
func Unsupported(reason string, features ...v1alpha1.Feature) Option {
	return func(s *settings) {
		for _, feature := range features {
			s.unsupported[feature] = reason
		}
	}
}

// New returns a cluster from the binaries in a directory, under the names of Kubernetes' releases: etcd, kube-apiserver and, depending on
// the options, kube-controller-manager, kube-scheduler and kubelet. `make build` builds them into bin/kubernetes/v1.36.3. Create starts the
// cluster.
//
// On Linux all components end with the runner in any case. On other systems those that `make build` built do, and others keep running when
// the runner is killed, until the next start or Sweep.
func New(binaries string, options ...Option) *Cluster {
	cluster := &Cluster{name: defaultName, binaries: binaries}
	cluster.settings.unsupported = map[v1alpha1.Feature]string{}
	for _, apply := range options {
		apply(&cluster.settings)
	}
	return cluster
}

// Create starts the cluster, and returns when the API server and, if present, the controllers respond, after about 3 s. If the context ends
// first, nothing is left.
func (c *Cluster) Create(ctx context.Context) error {
	if c.running != nil {
		return fmt.Errorf("start an embedded cluster: %q is already running", c.name)
	}
	if err := c.check(ctx); err != nil {
		return fmt.Errorf("start an embedded cluster: %w", err)
	}
	_, _ = Sweep() // this must not prevent a start; `runner cleanup` reports it
	var err error
	for range attempts {
		if c.running, err = startInstance(ctx, *c); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("start an embedded cluster: %w", err)
	}
	return nil
}

// check validates the options, and that the binaries can be used.
func (c *Cluster) check(ctx context.Context) error {
	switch {
	case c.settings.nodes < 0 || c.settings.nodes > MaxNodes:
		return fmt.Errorf("a cluster has 0 to %d nodes, not %d", MaxNodes, c.settings.nodes)
	case c.settings.nodes > 0 && c.settings.withoutControllers:
		return errors.New("a node needs the controllers")
	}
	absolute, err := filepath.Abs(c.binaries)
	if err != nil {
		return err
	}
	c.binaries = absolute
	c.version, err = checkBinaries(ctx, absolute, c.settings.requiredBinaries())
	return err
}

// KubernetesVersion is the version that the API server's binary reports, such as v1.36.3; empty before Create.
func (c *Cluster) KubernetesVersion() string {
	if c.version == nil {
		return ""
	}
	return "v" + c.version.String()
}

// Kubeconfig is the path of the administrator's kubeconfig; empty without a cluster.
func (c *Cluster) Kubeconfig() string {
	if c.running == nil {
		return ""
	}
	return c.running.kubeconfig
}

// Context is the only context of the kubeconfigs: the cluster's name.
func (c *Cluster) Context() string { return c.name }

// RESTConfig is the administrator's configuration; nil without a cluster.
func (c *Cluster) RESTConfig() *rest.Config {
	if c.running == nil {
		return nil
	}
	return rest.CopyConfig(c.running.admin)
}

// AddUser creates a kubeconfig for a user in groups, and returns its path. The user has no permissions without a RoleBinding. The file is
// removed with the cluster.
func (c *Cluster) AddUser(name string, groups ...string) (string, error) {
	cluster, err := c.cluster()
	if err != nil {
		return "", err
	}
	return cluster.writeKubeconfig(userDir, name, groups...)
}

// Alive returns nil while every component runs that was not stopped. Otherwise the error contains which one ended, its exit status, and the
// end of its log.
func (c *Cluster) Alive() error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	return cluster.alive(context.Background())
}

// AwaitEnd waits until a component of the cluster ends that was not stopped, and checks this once a second. The error names the component,
// how it ended and the last lines of its log. It is nil when the context ends.
func (c *Cluster) AwaitEnd(ctx context.Context) error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	_ = wait.PollUntilContextCancel(ctx, time.Second, false, func(ctx context.Context) (bool, error) {
		err = cluster.alive(ctx)
		return err != nil && ctx.Err() == nil, nil
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller has stopped waiting
	}
	return err
}

// Features returns the components of the cluster as features: a component that does not work fails behaviors.
func (c *Cluster) Features() provider.Features {
	features := provider.Features{
		Supported: []v1alpha1.Feature{
			v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode, v1alpha1.Hook, v1alpha1.PodNetwork,
		},
		Unsupported: map[v1alpha1.Feature]string{},
		Ephemeral:   true,
	}
	if c.running != nil {
		features.Components = c.running.dir.Path(componentSocket)
	}
	add := func(made bool, without string, affected ...v1alpha1.Feature) {
		for _, feature := range affected {
			if made {
				features.Supported = append(features.Supported, feature)
			} else {
				features.Unsupported[feature] = cmp.Or(c.settings.unsupported[feature], "the cluster was made without "+without)
			}
		}
	}
	add(!c.settings.withoutControllers, "controllers", v1alpha1.GC, v1alpha1.KCM)
	add(c.settings.nodes > 0, "a node", v1alpha1.Node)
	if c.settings.nodes < 2 { // the run looks for a second node itself, because it needs the name
		add(false, "a second node", v1alpha1.TwoNodes)
	}
	return features
}

// ExportLogs copies the log of every component to a directory, which is created if necessary.
func (c *Cluster) ExportLogs(dest string) error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	if err := os.CopyFS(dest, os.DirFS(cluster.dir.Path(logDir))); err != nil {
		return fmt.Errorf("copy the embedded cluster's logs to %s: %w", dest, err)
	}
	return nil
}

// Destroy ends every process of the cluster and removes its state directory. It has no effect without a cluster.
func (c *Cluster) Destroy() error {
	if c.running == nil {
		return nil
	}
	err := c.running.destroy()
	c.running = nil
	return err
}

func (c *Cluster) cluster() (*instance, error) {
	if c.running == nil {
		return nil, fmt.Errorf("embedded cluster %q does not exist: call Create first", c.name)
	}
	return c.running, nil
}

// Sweep removes what killed runners of this user left of embedded clusters: processes, the control groups of nodes, and state directories
// in the directory for temporary files (TMPDIR). It returns the removed directories. It does not touch running clusters.
func Sweep() ([]string, error) {
	return statedir.Stale(statedir.Embedded, func(path string) error {
		process.KillAll(path, sweepTimeout)
		if err := node.Sweep(path); err != nil {
			return err // keep the directory, because it names what is left
		}
		return os.RemoveAll(path)
	})
}
