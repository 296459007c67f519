// Package kind creates kind clusters for a run, with kind's Go API.
package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/distribution/reference"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/kind/internal/containers"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

// defaultName is the name of a kind cluster without another one. It differs from kind's default, which is a common name of users' clusters.
const defaultName = "deletion-conformance"

// ErrNameTaken is the error for an existing kind cluster with the name, which this provider must not use or delete.
var ErrNameTaken = errors.New("the name is taken")

// Cluster is a kind cluster that is created for a run and deleted after it. It uses kind's Go API instead of e2e-framework's kind provider,
// which calls the command: that provider installs kind with `go install`, reuses a cluster of the same name and deletes it at the end,
// changes the user's kubeconfig, reports no progress and cannot be interrupted. With the API there is one version of kind, in go.mod, and
// nothing to install except a container runtime. It waits for nodes with e2e-framework.
//
// It has its own kubeconfig and does not change the user's. The methods are not safe for concurrent use.
type Cluster struct {
	settings settings
	config   *v1alpha4.Cluster
	running  *instance // nil while there is no cluster
}

var _ provider.Created = &Cluster{}

// Option configures a kind cluster.
type Option func(*settings)

type settings struct {
	name, configFile, image string
	keep                    bool
	images                  []string
	logs                    string
	progress                io.Writer
}

// WithName sets the name of the cluster. The default is the name in the configuration, or else deletion-conformance.
func WithName(name string) Option { return func(s *settings) { s.name = name } }

// WithConfig configures the cluster with a file (https://kind.sigs.k8s.io/docs/user/configuration). The default is one node.
func WithConfig(file string) Option { return func(s *settings) { s.configFile = file } }

// WithImage sets the image of every node. The default is the image in the configuration, or that of this version of kind.
func WithImage(image string) Option { return func(s *settings) { s.image = image } }

// WithoutDestroy makes Destroy keep the cluster.
func WithoutDestroy() Option { return func(s *settings) { s.keep = true } }

// WithPreload loads those of these images onto the nodes that this machine has. The nodes pull the others.
func WithPreload(images ...string) Option {
	return func(s *settings) { s.images = append(s.images, images...) }
}

// WithLogs saves the logs of a cluster that could not be created to a directory.
func WithLogs(dir string) Option { return func(s *settings) { s.logs = dir } }

// WithProgress receives lines about the progress of the creation.
func WithProgress(out io.Writer) Option { return func(s *settings) { s.progress = out } }

// validNames matches valid names of a kind cluster: they are part of its nodes' host names, which have at most 63 characters.
var validNames = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,48}[a-z0-9])?$`)

// New returns a cluster with the options. It fails when they are not valid. Create creates the cluster.
func New(options ...Option) (*Cluster, error) {
	kind := &Cluster{settings: settings{progress: io.Discard}}
	for _, apply := range options {
		apply(&kind.settings)
	}
	return kind, kind.configure()
}

// configure reads the configuration, and applies the options.
func (k *Cluster) configure() error {
	config, err := readConfig(k.settings.configFile)
	if err != nil {
		return err
	}
	config.Name = cmp.Or(k.settings.name, config.Name, defaultName)
	if !validNames.MatchString(config.Name) {
		return fmt.Errorf("kind cluster name %q is not valid: use at most 50 lower case letters, digits, dots and dashes", config.Name)
	}
	v1alpha4.SetDefaultsCluster(config)
	for i := range config.Nodes {
		node := &config.Nodes[i]
		node.Image = cmp.Or(k.settings.image, node.Image)
		if _, err := reference.ParseNormalizedNamed(node.Image); err != nil {
			return fmt.Errorf("use the node image %q: %w; write it as in kindest/node:v1.35.0", node.Image, err)
		}
	}
	k.config = config
	return nil
}

// Name is the cluster's name.
func (k *Cluster) Name() string { return k.config.Name }

// Create creates the cluster and returns when all its nodes are Ready, after about a minute if the image is on this machine. If it fails,
// or the context ends first, nothing is left.
//
// It fails with ErrNameTaken when a cluster with that name exists. Other errors contain what is missing on this machine, or the errors of
// the nodes.
func (k *Cluster) Create(ctx context.Context) error {
	if k.running != nil {
		return fmt.Errorf("create a kind cluster: %q already exists", k.Name())
	}
	running, err := createInstance(ctx, k.config, k.settings)
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case err != nil:
		return fmt.Errorf("create the kind cluster %q: %w", k.Name(), err)
	}
	k.running = running
	return nil
}

// Kubeconfig is the path of the administrator's kubeconfig; empty without a cluster.
func (k *Cluster) Kubeconfig() string {
	if k.running == nil {
		return ""
	}
	return k.running.kubeconfig()
}

// Context is the context that kind names after the cluster.
func (k *Cluster) Context() string { return "kind-" + k.Name() }

// RESTConfig is the administrator's configuration; nil without a cluster.
func (k *Cluster) RESTConfig() *rest.Config {
	if k.running == nil {
		return nil
	}
	return rest.CopyConfig(k.running.admin)
}

// Features are what every kind cluster has: a component that does not work fails behaviors. A run probes the nodes for their container
// runtime. Webhooks are reached at this machine's address on the network of the nodes, if it has one.
func (k *Cluster) Features() provider.Features {
	features := provider.Features{
		Supported: []v1alpha1.Feature{
			v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode, v1alpha1.PodNetwork,
			v1alpha1.GC, v1alpha1.KCM,
		},
		Unsupported: map[v1alpha1.Feature]string{},
		Ephemeral:   !k.settings.keep,
	}
	if k.running == nil {
		return features
	}
	var err error
	if features.WebhookHost, err = k.running.gateway(); err != nil {
		features.NoWebhooks = err.Error()
	}
	return features
}

// ExportLogs writes the logs of the nodes and of all containers to a directory.
func (k *Cluster) ExportLogs(dest string) error {
	running, err := k.cluster()
	if err != nil {
		return err
	}
	return running.exportLogs(dest)
}

// Destroy deletes the cluster, unless it is kept, and its kubeconfig. It has no effect without a cluster.
func (k *Cluster) Destroy() error {
	if k.running == nil {
		return nil
	}
	running := k.running
	k.running = nil
	if k.settings.keep {
		return running.forget()
	}
	return running.destroy()
}

func (k *Cluster) cluster() (*instance, error) {
	if k.running == nil {
		return nil, fmt.Errorf("kind cluster %q does not exist: call Create first", k.Name())
	}
	return k.running, nil
}

// instance is a kind cluster, possibly incomplete.
type instance struct {
	config   *v1alpha4.Cluster
	runtime  containers.Runtime
	provider *cluster.Provider
	dir      *statedir.Dir
	admin    *rest.Config
	report   progressLines
}

func (c *instance) kubeconfig() string { return c.dir.Path("kubeconfig") }

// connect reads the kubeconfig that kind has written.
func (c *instance) connect() (err error) {
	if c.admin, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig()); err != nil {
		return fmt.Errorf("read its kubeconfig: %w", err)
	}
	return nil
}

// exportLogs writes the available logs.
func (c *instance) exportLogs(dest string) error {
	if err := c.provider.CollectLogs(c.config.Name, dest); err != nil {
		return fmt.Errorf("save the logs of the kind cluster %q to %s: %w", c.config.Name, dest, err)
	}
	return nil
}

// destroy deletes the nodes and the state directory.
func (c *instance) destroy() error {
	err := c.provider.Delete(c.config.Name, c.kubeconfig())
	if err != nil {
		err = fmt.Errorf("delete the kind cluster %q: %w; %s", c.config.Name, reasonOf(err), c.removal())
	}
	return errors.Join(err, c.forget())
}

// forget removes the state directory, with the kubeconfig.
func (c *instance) forget() error { return c.dir.Remove() }
