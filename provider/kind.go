package provider

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
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/containers"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/statedir"
)

// defaultKindName is what a kind cluster is called unless the options or the configuration name it. It is not kind's own
// default, which is what people call the cluster that they work with.
const defaultKindName = "deletion-conformance"

// ErrKindNameTaken says that there is a kind cluster of that name, which is not this provider's to use or to delete.
var ErrKindNameTaken = errors.New("the name is taken")

// Kind is a kind cluster that is made for a run and deleted after it. It is made with kind's own Go API and not with
// e2e-framework's kind provider, which calls the command: that provider installs kind with `go install` where it is missing,
// takes a cluster of the same name for its own and deletes it at the end, changes the user's kubeconfig, says nothing
// while it works and cannot be interrupted. With the API there is one version of kind, the one in go.mod, and nothing to
// install but a container runtime. Of e2e-framework it keeps the interface, and how it waits for nodes.
//
// Its kubeconfig is a file of its own; those of the user are not touched. The methods are not safe for use by several goroutines
// at once.
type Kind struct {
	settings kindSettings
	config   *v1alpha4.Cluster
	running  *kindCluster // nil while there is no cluster
}

var (
	_ support.E2EClusterProvider = &Kind{}
	_ FeatureReporter            = &Kind{}
	_ Ephemeral                  = &Kind{}
	_ WebhookReporter            = &Kind{}
)

// KindOption is a choice about a kind cluster.
type KindOption func(*kindSettings)

type kindSettings struct {
	name, configFile, image string
	keep                    bool
	images                  []string
	logs                    string
	progress                io.Writer
}

// KindName names the cluster. Without it the configuration does, or else it is called deletion-conformance.
func KindName(name string) KindOption { return func(s *kindSettings) { s.name = name } }

// KindConfig makes the cluster as a file says (https://kind.sigs.k8s.io/docs/user/configuration). Without it the cluster has one
// node.
func KindConfig(file string) KindOption { return func(s *kindSettings) { s.configFile = file } }

// KindImage makes every node from an image. Without it the configuration names the images, or it is the one that this version
// of kind was released with.
func KindImage(image string) KindOption { return func(s *kindSettings) { s.image = image } }

// KindKept has Destroy leave the cluster.
func KindKept() KindOption { return func(s *kindSettings) { s.keep = true } }

// KindPreload gives the nodes those of these images that this machine has. They pull what else they need.
func KindPreload(images ...string) KindOption {
	return func(s *kindSettings) { s.images = append(s.images, images...) }
}

// KindLogs saves the logs of a cluster that could not be made into a directory.
func KindLogs(dir string) KindOption { return func(s *kindSettings) { s.logs = dir } }

// KindProgress is told, in lines, what is done while the cluster is made.
func KindProgress(out io.Writer) KindOption { return func(s *kindSettings) { s.progress = out } }

// kindNames are the names that a kind cluster can have: its nodes are called by it, and host names have 63 characters at most.
var kindNames = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,48}[a-z0-9])?$`)

// NewKind is a cluster as the options say. It fails when no cluster can be like that. Nothing is made before Create.
func NewKind(options ...KindOption) (*Kind, error) {
	kind := &Kind{settings: kindSettings{progress: io.Discard}}
	for _, apply := range options {
		apply(&kind.settings)
	}
	return kind, kind.configure()
}

// configure reads the configuration, and adds what the options say.
func (k *Kind) configure() error {
	config, err := readKindConfig(k.settings.configFile)
	if err != nil {
		return err
	}
	config.Name = cmp.Or(k.settings.name, config.Name, defaultKindName)
	if !kindNames.MatchString(config.Name) {
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
func (k *Kind) Name() string { return k.config.Name }

// Create makes the cluster and returns the path of its kubeconfig once all its nodes are ready, which takes about a minute
// where the image is on this machine. When it fails, or the context ends first, nothing is left.
//
// It fails with ErrKindNameTaken where there is a cluster of that name. Other errors say what is missing on this machine, or
// what the nodes said.
func (k *Kind) Create(ctx context.Context, args ...string) (string, error) {
	if len(args) > 0 {
		return "", errors.New("make a kind cluster: it takes options, not arguments")
	}
	if k.running != nil {
		return "", fmt.Errorf("make a kind cluster: %q is running already", k.Name())
	}
	running, err := createKind(ctx, k.config, k.settings)
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return "", fmt.Errorf("%w: %w", ctx.Err(), err)
	case err != nil:
		return "", fmt.Errorf("make the kind cluster %q: %w", k.Name(), err)
	}
	k.running = running
	return running.kubeconfig(), nil
}

// CreateWithConfig is Create, as a configuration file says.
func (k *Kind) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	k.settings.configFile = configFile
	if err := k.configure(); err != nil {
		return "", err
	}
	return k.Create(ctx)
}

// WithName names the cluster.
func (k *Kind) WithName(name string) support.E2EClusterProvider {
	k.settings.name, k.config.Name = name, name
	return k
}

// WithVersion makes every node from the image that kind publishes for a version of Kubernetes, such as 1.35.0.
func (k *Kind) WithVersion(version string) support.E2EClusterProvider {
	k.settings.image = KindImageOf(version)
	for i := range k.config.Nodes {
		k.config.Nodes[i].Image = k.settings.image
	}
	return k
}

// WithPath does nothing: no binary of kind is needed.
func (k *Kind) WithPath(string) support.E2EClusterProvider { return k }

// WithOpts applies the options.
func (k *Kind) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, apply := range opts {
		apply(k)
	}
	return k
}

// SetDefaults does nothing: NewKind has set them.
func (k *Kind) SetDefaults() support.E2EClusterProvider { return k }

// GetKubeconfig is the path of the administrator's kubeconfig; empty while there is no cluster.
func (k *Kind) GetKubeconfig() string {
	if k.running == nil {
		return ""
	}
	return k.running.kubeconfig()
}

// GenerateKubeconfig is GetKubeconfig, or an error while there is no cluster.
func (k *Kind) GenerateKubeconfig(...string) (string, error) {
	running, err := k.cluster()
	if err != nil {
		return "", err
	}
	return running.kubeconfig(), nil
}

// GetKubectlContext is the context that kind gives a cluster.
func (k *Kind) GetKubectlContext() string { return "kind-" + k.Name() }

// KubernetesRestConfig is how the administrator reaches the cluster; nil while there is none.
func (k *Kind) KubernetesRestConfig() *rest.Config {
	if k.running == nil {
		return nil
	}
	return rest.CopyConfig(k.running.admin)
}

// WaitForControlPlane waits until every node is ready, those of the control plane among them. Create has done so already.
func (k *Kind) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	running, err := k.cluster()
	if err != nil {
		return err
	}
	return running.waitForNodes(ctx)
}

// Features are what every kind cluster has: a component that does not do its work fails behaviours. Of its nodes, which were
// ready, a run asks itself, to learn what runs their containers.
func (k *Kind) Features() Features {
	return Features{
		Supported:   []v1alpha1.Need{v1alpha1.CRD, v1alpha1.Admin, v1alpha1.GC, v1alpha1.KCM},
		Unsupported: map[v1alpha1.Need]string{},
	}
}

// WebhookHost is this machine's address on the network of the nodes.
func (k *Kind) WebhookHost() (string, error) {
	running, err := k.cluster()
	if err != nil {
		return "", err
	}
	return running.gateway()
}

// ExportLogs writes the logs of the nodes and of all containers into a directory.
func (k *Kind) ExportLogs(_ context.Context, dest string) error {
	running, err := k.cluster()
	if err != nil {
		return err
	}
	return running.exportLogs(dest)
}

// Destroy deletes the cluster, unless it is to be kept, and its kubeconfig. It does nothing when there is no cluster.
func (k *Kind) Destroy(context.Context) error {
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

// Ephemeral says whether Destroy removes the cluster with all that is on it.
func (k *Kind) Ephemeral() bool { return !k.settings.keep }

func (k *Kind) cluster() (*kindCluster, error) {
	if k.running == nil {
		return nil, fmt.Errorf("there is no kind cluster %q: Create it first", k.Name())
	}
	return k.running, nil
}

// kindCluster is a kind cluster, or what there is of one.
type kindCluster struct {
	config   *v1alpha4.Cluster
	runtime  containers.Runtime
	provider *cluster.Provider
	dir      *statedir.Dir
	admin    *rest.Config
	report   progressLines
}

func (c *kindCluster) kubeconfig() string { return c.dir.Path("kubeconfig") }

// connect reads the kubeconfig that kind has written.
func (c *kindCluster) connect() (err error) {
	if c.admin, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig()); err != nil {
		return fmt.Errorf("read its kubeconfig: %w", err)
	}
	return nil
}

// exportLogs writes what there is of logs.
func (c *kindCluster) exportLogs(dest string) error {
	if err := c.provider.CollectLogs(c.config.Name, dest); err != nil {
		return fmt.Errorf("save the logs of the kind cluster %q to %s: %w", c.config.Name, dest, err)
	}
	return nil
}

// destroy deletes the nodes, and forgets the cluster.
func (c *kindCluster) destroy() error {
	err := c.provider.Delete(c.config.Name, c.kubeconfig())
	if err != nil {
		err = fmt.Errorf("delete the kind cluster %q: %w; %s", c.config.Name, said(err), c.removal())
	}
	return errors.Join(err, c.forget())
}

// forget removes the state directory, with the kubeconfig.
func (c *kindCluster) forget() error { return c.dir.Remove() }
