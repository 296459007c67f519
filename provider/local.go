package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/process"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/statedir"
)

const (
	defaultLocalName = "local"
	// attempts is how often a cluster is started when a port that was free is taken by the time it is used.
	attempts = 3
	// sweepTimeout is how long the processes of a stale cluster may take to be gone once they are killed.
	sweepTimeout = 10 * time.Second
)

// Local is a cluster of its own on this machine: real, unmodified Kubernetes as processes of the runner. It needs
// neither root nor containers, listens on loopback only, keeps everything in one temporary directory and leaves nothing
// behind, also when the runner is killed: its processes end by themselves within seconds, and the next start (or
// SweepLocal) removes the directory. Any number of them can run side by side.
//
// Every request needs a client certificate that only the directory's owner can read; etcd listens on a socket in that
// directory.
//
// The methods are not safe for use by several goroutines at once.
type Local struct {
	name     string
	binaries string
	version  *version.Version // of the binaries; nil before Create
	settings localSettings
	running  *localCluster // nil while there is no cluster
}

var (
	_ FeatureReporter     = &Local{}
	_ ComponentController = &Local{}
	_ Ephemeral           = &Local{}
)

// LocalOption is a choice about a local cluster.
type LocalOption func(*localSettings)

type localSettings struct {
	withoutControllers bool
	auditLog           string
	apiServerFlags     []string
	node               *Images                  // nil without a node
	unsupported        map[v1alpha1.Need]string // why, where that is known better than from the other settings
}

// WithoutControllers leaves the controller manager and the scheduler out: an API server and its storage, no more. No
// namespace gets a default service account there, and nothing is collected, scheduled or finalized.
func WithoutControllers() LocalOption {
	return func(s *localSettings) { s.withoutControllers = true }
}

// WithAuditLog makes the API server write every request's metadata to a file, as one JSON event a line, when it is
// answered. The file outlives the cluster.
func WithAuditLog(path string) LocalOption {
	return func(s *localSettings) { s.auditLog = path }
}

// WithAPIServerFlags passes more flags to kube-apiserver, such as the file of an admission configuration, so that a test can
// configure it like that of a production cluster.
func WithAPIServerFlags(flags ...string) LocalOption {
	return func(s *localSettings) { s.apiServerFlags = append(s.apiServerFlags, flags...) }
}

// WithNode gives the cluster a real node: a kubelet and containerd, with processes, mounts, interfaces and addresses
// that nobody else on this machine sees. NodeSupported says whether the machine can have one. The node has the images
// from the start and reaches no registry; pods reach nothing but each other and the node.
func WithNode(images Images) LocalOption {
	return func(s *localSettings) { s.node = &images }
}

// Unsupported says why the cluster that the other options describe does not support needs, where there is more to say
// than that it was made so.
func Unsupported(reason string, needs ...v1alpha1.Need) LocalOption {
	return func(s *localSettings) {
		for _, need := range needs {
			s.unsupported[need] = reason
		}
	}
}

// NewLocal is a cluster made from the binaries in a directory, under the names that Kubernetes releases them by: etcd,
// kube-apiserver and, as the options say, kube-controller-manager, kube-scheduler and kubelet. `make build` puts them into
// bin/kubernetes/v1.36.3. Nothing is started before Create.
//
// Components that `make build` made end with the runner, however it ends. Others are left when it is killed outright,
// until the next start or SweepLocal.
func NewLocal(binaries string, options ...LocalOption) *Local {
	local := &Local{name: defaultLocalName, binaries: binaries}
	local.settings.unsupported = map[v1alpha1.Need]string{}
	for _, apply := range options {
		apply(&local.settings)
	}
	return local
}

// Create starts the cluster and returns the path of a kubeconfig for its administrator once the API server and, unless
// left out, the controllers answer, which takes some 3 s. When the context ends first, nothing is left.
func (l *Local) Create(ctx context.Context, args ...string) (string, error) {
	if len(args) > 0 {
		return "", errors.New("start a local cluster: it takes options, not arguments")
	}
	if l.running != nil {
		return "", fmt.Errorf("start a local cluster: %q is running already", l.name)
	}
	if err := l.check(ctx); err != nil {
		return "", fmt.Errorf("start a local cluster: %w", err)
	}
	_, _ = SweepLocal() // what cannot be removed is no reason not to start; `runner cleanup` reports it
	var err error
	for range attempts {
		if l.running, err = startLocal(ctx, *l); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("start a local cluster: %w", err)
	}
	return l.running.kubeconfig, nil
}

// check says whether the options go together, and which binary cannot be used and how to get it.
func (l *Local) check(ctx context.Context) error {
	if l.settings.node != nil && l.settings.withoutControllers {
		return errors.New("a node needs the controllers")
	}
	absolute, err := filepath.Abs(l.binaries)
	if err != nil {
		return err
	}
	l.binaries = absolute
	l.version, err = checkBinaries(ctx, absolute, l.settings.needed())
	return err
}

// KubernetesVersion is what the API server's binary says of itself, such as v1.36.3; empty before Create.
func (l *Local) KubernetesVersion() string {
	if l.version == nil {
		return ""
	}
	return "v" + l.version.String()
}

// CreateWithConfig refuses: a local cluster takes options.
func (l *Local) CreateWithConfig(context.Context, string) (string, error) {
	return "", errors.New("start a local cluster: it takes options, not a configuration file")
}

// WithName names the cluster in its kubeconfigs; the default is "local".
func (l *Local) WithName(name string) support.E2EClusterProvider {
	l.name = name
	return l
}

// WithVersion takes the binaries of another version of Kubernetes ("1.34.4") from beside those it was made with.
func (l *Local) WithVersion(version string) support.E2EClusterProvider {
	l.binaries = filepath.Join(filepath.Dir(l.binaries), "v"+strings.TrimPrefix(version, "v"))
	return l
}

// WithPath takes the binaries from another directory.
func (l *Local) WithPath(path string) support.E2EClusterProvider {
	l.binaries = path
	return l
}

// WithOpts applies the options.
func (l *Local) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, apply := range opts {
		apply(l)
	}
	return l
}

// SetDefaults does nothing: NewLocal has set them.
func (l *Local) SetDefaults() support.E2EClusterProvider { return l }

// GetKubeconfig is the path of the administrator's kubeconfig; empty while there is no cluster.
func (l *Local) GetKubeconfig() string {
	if l.running == nil {
		return ""
	}
	return l.running.kubeconfig
}

// GenerateKubeconfig is GetKubeconfig, or an error while there is no cluster. AddUser makes other kubeconfigs.
func (l *Local) GenerateKubeconfig(...string) (string, error) {
	cluster, err := l.cluster()
	if err != nil {
		return "", err
	}
	return cluster.kubeconfig, nil
}

// GetKubectlContext is the only context of the kubeconfigs: the cluster's name.
func (l *Local) GetKubectlContext() string { return l.name }

// KubernetesRestConfig is how the administrator reaches the cluster; nil while there is none.
func (l *Local) KubernetesRestConfig() *rest.Config {
	if l.running == nil {
		return nil
	}
	return rest.CopyConfig(l.running.admin)
}

// AddUser makes a kubeconfig for a user in groups, and returns its path. What the user may do is up to RBAC: nothing,
// until a binding says otherwise. The file goes when the cluster goes.
func (l *Local) AddUser(name string, groups ...string) (string, error) {
	cluster, err := l.cluster()
	if err != nil {
		return "", err
	}
	return cluster.writeKubeconfig(userDir, name, groups...)
}

// Alive is nil while every component of the cluster runs that was not stopped; otherwise it says which ended, how, and
// what it said last.
func (l *Local) Alive() error {
	cluster, err := l.cluster()
	if err != nil {
		return err
	}
	return cluster.alive(context.Background())
}

// WaitForControlPlane waits until the API server is ready and the controllers are healthy. Create has done so already.
func (l *Local) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	cluster, err := l.cluster()
	if err != nil {
		return err
	}
	return cluster.waitUntilReady(ctx)
}

// Features are what the cluster consists of: a component that does not do its work fails behaviours.
func (l *Local) Features() Features {
	features := Features{
		Supported:   []v1alpha1.Need{v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Hook},
		Unsupported: map[v1alpha1.Need]string{},
	}
	add := func(made bool, without string, needs ...v1alpha1.Need) {
		for _, need := range needs {
			if made {
				features.Supported = append(features.Supported, need)
			} else {
				features.Unsupported[need] = cmp.Or(l.settings.unsupported[need], "the cluster was made without "+without)
			}
		}
	}
	add(!l.settings.withoutControllers, "controllers", v1alpha1.GC, v1alpha1.KCM)
	add(l.settings.node != nil, "a node", v1alpha1.Node)
	return features
}

// Components is the path of the socket under which the controller manager and the kubelet can be stopped and started,
// where there are any; see package component. It is empty while there is no cluster.
func (l *Local) Components() string {
	if l.running == nil {
		return ""
	}
	return l.running.dir.Path(componentSocket)
}

// ExportLogs copies the log of every component into a directory, which is made if need be.
func (l *Local) ExportLogs(_ context.Context, dest string) error {
	cluster, err := l.cluster()
	if err != nil {
		return err
	}
	if err := os.CopyFS(dest, os.DirFS(cluster.dir.Path(logDir))); err != nil {
		return fmt.Errorf("copy the local cluster's logs to %s: %w", dest, err)
	}
	return nil
}

// Destroy ends every process of the cluster and removes its state directory. It does nothing when there is no cluster.
func (l *Local) Destroy(context.Context) error {
	if l.running == nil {
		return nil
	}
	err := l.running.destroy()
	l.running = nil
	return err
}

func (l *Local) cluster() (*localCluster, error) {
	if l.running == nil {
		return nil, fmt.Errorf("there is no local cluster %q: Create it first", l.name)
	}
	return l.running, nil
}

// SweepLocal removes what local clusters of this user left whose runner was killed before it could: their processes,
// the control groups of their nodes, and their state directories in the directory for temporary files (TMPDIR). It
// returns those it removed. Living clusters are not touched.
func SweepLocal() ([]string, error) {
	return statedir.Stale(statedir.Local, func(path string) error {
		process.KillAll(path, sweepTimeout)
		if err := node.Sweep(path); err != nil {
			return err // the directory is kept, as it names what is left
		}
		return os.RemoveAll(path)
	})
}

// Ephemeral says that Destroy removes the cluster with all that is on it.
func (l *Local) Ephemeral() bool { return true }
