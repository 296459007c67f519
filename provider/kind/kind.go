// Package kind makes kind clusters for a run, with kind's Go API.
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

// defaultName is what a kind cluster is called unless the options or the configuration name it. It is not kind's own
// default, which is what people call the cluster that they work with.
const defaultName = "deletion-conformance"

// ErrNameTaken says that there is a kind cluster of that name, which is not this provider's to use or to delete.
var ErrNameTaken = errors.New("the name is taken")

// Cluster is a kind cluster that is made for a run and deleted after it. It is made with kind's own Go API and not with
// e2e-framework's kind provider, which calls the command: that provider installs kind with `go install` where it is missing,
// takes a cluster of the same name for its own and deletes it at the end, changes the user's kubeconfig, says nothing
// while it works and cannot be interrupted. With the API there is one version of kind, the one in go.mod, and nothing to
// install but a container runtime. Of e2e-framework it uses how to wait for nodes.
//
// Its kubeconfig is a file of its own; those of the user are not touched. The methods are not safe for use by several goroutines
// at once.
type Cluster struct {
	settings settings
	config   *v1alpha4.Cluster
	running  *instance // nil while there is no cluster
}

var _ provider.Created = &Cluster{}

// Option is a choice about a kind cluster.
type Option func(*settings)

type settings struct {
	name, configFile, image string
	keep                    bool
	images                  []string
	logs                    string
	progress                io.Writer
}

// WithName names the cluster. Without it the configuration does, or else it is called deletion-conformance.
func WithName(name string) Option { return func(s *settings) { s.name = name } }

// WithConfig makes the cluster as a file says (https://kind.sigs.k8s.io/docs/user/configuration). Without it the cluster has one
// node.
func WithConfig(file string) Option { return func(s *settings) { s.configFile = file } }

// WithImage makes every node from an image. Without it the configuration names the images, or it is the one that this version
// of kind was released with.
func WithImage(image string) Option { return func(s *settings) { s.image = image } }

// Kept has Destroy leave the cluster.
func Kept() Option { return func(s *settings) { s.keep = true } }

// WithPreload gives the nodes those of these images that this machine has. They pull what else they need.
func WithPreload(images ...string) Option {
	return func(s *settings) { s.images = append(s.images, images...) }
}

// WithLogs saves the logs of a cluster that could not be made into a directory.
func WithLogs(dir string) Option { return func(s *settings) { s.logs = dir } }

// WithProgress is told, in lines, what is done while the cluster is made.
func WithProgress(out io.Writer) Option { return func(s *settings) { s.progress = out } }

// validNames are the names that a kind cluster can have: its nodes are called by it, and host names have 63 characters at most.
var validNames = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,48}[a-z0-9])?$`)

// New is a cluster as the options say. It fails when no cluster can be like that. Nothing is made before Create.
func New(options ...Option) (*Cluster, error) {
	kind := &Cluster{settings: settings{progress: io.Discard}}
	for _, apply := range options {
		apply(&kind.settings)
	}
	return kind, kind.configure()
}

// configure reads the configuration, and adds what the options say.
func (k *Cluster) configure() error {
	config, err := readConfig(k.settings.configFile)
	if err != nil {
		return err
	}
	config.Name = cmp.Or(k.settings.name, config.Name, defaultName)
	if !validNames.MatchString(config.Name) {
		return fmt.Errorf("name a kind cluster %q: a name has at most 50 lower case letters, digits, dots and dashes", config.Name)
	}
	v1alpha4.SetDefaultsCluster(config)
	for i := range config.Nodes {
		node := &config.Nodes[i]
		node.Image = cmp.Or(k.settings.image, node.Image)
		if _, err := reference.ParseNormalizedNamed(node.Image); err != nil {
			return fmt.Errorf("make nodes from the image %q: %w; write it as in kindest/node:v1.35.0", node.Image, err)
		}
	}
	k.config = config
	return nil
}

// Name is the cluster's name.
func (k *Cluster) Name() string { return k.config.Name }

// Create makes the cluster and returns once all its nodes are ready, which takes about a minute where the image is on this
// machine. When it fails, or the context ends first, nothing is left.
//
// It fails with ErrNameTaken where there is a cluster of that name. Other errors say what is missing on this machine, or
// what the nodes said.
func (k *Cluster) Create(ctx context.Context) error {
	if k.running != nil {
		return fmt.Errorf("make a kind cluster: %q is running already", k.Name())
	}
	running, err := createInstance(ctx, k.config, k.settings)
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case err != nil:
		return fmt.Errorf("make the kind cluster %q: %w", k.Name(), err)
	}
	k.running = running
	return nil
}

// Kubeconfig is the path of the administrator's kubeconfig; empty while there is no cluster.
func (k *Cluster) Kubeconfig() string {
	if k.running == nil {
		return ""
	}
	return k.running.kubeconfig()
}

// Context is the context that kind gives a cluster.
func (k *Cluster) Context() string { return "kind-" + k.Name() }

// RESTConfig is how the administrator reaches the cluster; nil while there is none.
func (k *Cluster) RESTConfig() *rest.Config {
	if k.running == nil {
		return nil
	}
	return rest.CopyConfig(k.running.admin)
}

// Features are what every kind cluster has: a component that does not do its work fails behaviors. Of its nodes, which were
// ready, a run asks itself, to learn what runs their containers. Webhooks are reached at this machine's address on the network of
// the nodes, where it has one.
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

// ExportLogs writes the logs of the nodes and of all containers into a directory.
func (k *Cluster) ExportLogs(dest string) error {
	running, err := k.cluster()
	if err != nil {
		return err
	}
	return running.exportLogs(dest)
}

// Destroy deletes the cluster, unless it is to be kept, and its kubeconfig. It does nothing when there is no cluster.
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
		return nil, fmt.Errorf("there is no kind cluster %q: Create it first", k.Name())
	}
	return k.running, nil
}

// instance is a kind cluster, or what there is of one.
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

// exportLogs writes what there is of logs.
func (c *instance) exportLogs(dest string) error {
	if err := c.provider.CollectLogs(c.config.Name, dest); err != nil {
		return fmt.Errorf("save the logs of the kind cluster %q to %s: %w", c.config.Name, dest, err)
	}
	return nil
}

// destroy deletes the nodes, and forgets the cluster.
func (c *instance) destroy() error {
	err := c.provider.Delete(c.config.Name, c.kubeconfig())
	if err != nil {
		err = fmt.Errorf("delete the kind cluster %q: %w; %s", c.config.Name, said(err), c.removal())
	}
	return errors.Join(err, c.forget())
}

// forget removes the state directory, with the kubeconfig.
func (c *instance) forget() error { return c.dir.Remove() }
