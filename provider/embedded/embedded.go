// Package embedded makes clusters of real, unmodified Kubernetes as processes on this machine.
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
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

const (
	defaultName = "embedded"
	// attempts is how often a cluster is started when a port that was free is taken by the time it is used.
	attempts = 3
	// sweepTimeout is how long the processes of a stale cluster may take to be gone once they are killed.
	sweepTimeout = 10 * time.Second
)

// Cluster is a cluster of its own on this machine: real, unmodified Kubernetes as processes of the runner. It needs
// neither root nor containers, listens on loopback only, keeps everything in one temporary directory and leaves nothing
// behind, also when the runner is killed: its processes end by themselves within seconds, and the next start (or
// Sweep) removes the directory. Any number of them can run side by side.
//
// Every request needs a client certificate that only the directory's owner can read; etcd listens on a socket in that
// directory.
//
// The methods are not safe for use by several goroutines at once.
type Cluster struct {
	name     string
	binaries string
	version  *version.Version // of the binaries; nil before Create
	settings settings
	running  *instance // nil while there is no cluster
}

var _ provider.Created = &Cluster{}

// Option is a choice about an embedded cluster.
type Option func(*settings)

type settings struct {
	withoutControllers bool
	auditLog           string
	apiServerFlags     []string
	node               *Images                     // nil without a node
	unsupported        map[v1alpha1.Feature]string // why, where that is known better than from the other settings
}

// WithoutControllers leaves the controller manager and the scheduler out: an API server and its storage, no more. No
// namespace gets a default service account there, and nothing is collected, scheduled or finalized.
func WithoutControllers() Option {
	return func(s *settings) { s.withoutControllers = true }
}

// WithAuditLog makes the API server write every request's metadata to a file, as one JSON event a line, when it is
// answered. The file outlives the cluster.
func WithAuditLog(path string) Option {
	return func(s *settings) { s.auditLog = path }
}

// WithAPIServerFlags passes more flags to kube-apiserver, such as the file of an admission configuration, so that a test can
// configure it like that of a production cluster.
func WithAPIServerFlags(flags ...string) Option {
	return func(s *settings) { s.apiServerFlags = append(s.apiServerFlags, flags...) }
}

// WithNode gives the cluster a real node: a kubelet and containerd, with processes, mounts, interfaces and addresses
// that nobody else on this machine sees. NodeSupported says whether the machine can have one. The node has the images
// from the start and reaches no registry; pods reach nothing but each other and the node.
func WithNode(images Images) Option {
	return func(s *settings) { s.node = &images }
}

// Unsupported says why the cluster that the other options describe does not support needs, where there is more to say
// than that it was made so.
func Unsupported(reason string, needs ...v1alpha1.Feature) Option {
	return func(s *settings) {
		for _, need := range needs {
			s.unsupported[need] = reason
		}
	}
}

// New is a cluster made from the binaries in a directory, under the names that Kubernetes releases them by: etcd,
// kube-apiserver and, as the options say, kube-controller-manager, kube-scheduler and kubelet. `make build` puts them into
// bin/kubernetes/v1.36.3. Nothing is started before Create.
//
// Components that `make build` made end with the runner, however it ends. Others are left when it is killed outright,
// until the next start or Sweep.
func New(binaries string, options ...Option) *Cluster {
	cluster := &Cluster{name: defaultName, binaries: binaries}
	cluster.settings.unsupported = map[v1alpha1.Feature]string{}
	for _, apply := range options {
		apply(&cluster.settings)
	}
	return cluster
}

// Create starts the cluster, and returns once the API server and, unless left out, the controllers answer, which takes some
// 3 s. When the context ends first, nothing is left.
func (c *Cluster) Create(ctx context.Context) error {
	if c.running != nil {
		return fmt.Errorf("start an embedded cluster: %q is running already", c.name)
	}
	if err := c.check(ctx); err != nil {
		return fmt.Errorf("start an embedded cluster: %w", err)
	}
	_, _ = Sweep() // what cannot be removed is no reason not to start; `runner cleanup` reports it
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

// check says whether the options go together, and which binary cannot be used and how to get it.
func (c *Cluster) check(ctx context.Context) error {
	if c.settings.node != nil && c.settings.withoutControllers {
		return errors.New("a node needs the controllers")
	}
	absolute, err := filepath.Abs(c.binaries)
	if err != nil {
		return err
	}
	c.binaries = absolute
	c.version, err = checkBinaries(ctx, absolute, c.settings.needed())
	return err
}

// KubernetesVersion is what the API server's binary says of itself, such as v1.36.3; empty before Create.
func (c *Cluster) KubernetesVersion() string {
	if c.version == nil {
		return ""
	}
	return "v" + c.version.String()
}

// Kubeconfig is the path of the administrator's kubeconfig; empty while there is no cluster.
func (c *Cluster) Kubeconfig() string {
	if c.running == nil {
		return ""
	}
	return c.running.kubeconfig
}

// Context is the only context of the kubeconfigs: the cluster's name.
func (c *Cluster) Context() string { return c.name }

// RESTConfig is how the administrator reaches the cluster; nil while there is none.
func (c *Cluster) RESTConfig() *rest.Config {
	if c.running == nil {
		return nil
	}
	return rest.CopyConfig(c.running.admin)
}

// AddUser makes a kubeconfig for a user in groups, and returns its path. What the user may do is up to RBAC: nothing,
// until a binding says otherwise. The file goes when the cluster goes.
func (c *Cluster) AddUser(name string, groups ...string) (string, error) {
	cluster, err := c.cluster()
	if err != nil {
		return "", err
	}
	return cluster.writeKubeconfig(userDir, name, groups...)
}

// Alive is nil while every component of the cluster runs that was not stopped; otherwise it says which ended, how, and
// what it said last.
func (c *Cluster) Alive() error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	return cluster.alive(context.Background())
}

// Features are what the cluster consists of: a component that does not do its work fails behaviors.
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
	add := func(made bool, without string, needs ...v1alpha1.Feature) {
		for _, need := range needs {
			if made {
				features.Supported = append(features.Supported, need)
			} else {
				features.Unsupported[need] = cmp.Or(c.settings.unsupported[need], "the cluster was made without "+without)
			}
		}
	}
	add(!c.settings.withoutControllers, "controllers", v1alpha1.GC, v1alpha1.KCM)
	add(c.settings.node != nil, "a node", v1alpha1.Node)
	return features
}

// ExportLogs copies the log of every component into a directory, which is made if need be.
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

// Destroy ends every process of the cluster and removes its state directory. It does nothing when there is no cluster.
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
		return nil, fmt.Errorf("there is no embedded cluster %q: Create it first", c.name)
	}
	return c.running, nil
}

// Sweep removes what embedded clusters of this user left whose runner was killed before it could: their processes,
// the control groups of their nodes, and their state directories in the directory for temporary files (TMPDIR). It
// returns those it removed. Living clusters are not touched.
func Sweep() ([]string, error) {
	return statedir.Stale(statedir.Embedded, func(path string) error {
		process.KillAll(path, sweepTimeout)
		if err := node.Sweep(path); err != nil {
			return err // the directory is kept, as it names what is left
		}
		return os.RemoveAll(path)
	})
}
