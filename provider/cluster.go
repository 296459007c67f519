package provider

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deletion-conformance/deletion-conformance/provider/internal/authority"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/process"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/runfolder"
)

// The parts of a local cluster, by the names of their binaries.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

const (
	logFolder = "logs"
	// userFolder is where the kubeconfigs of users are that were added.
	userFolder = "users"
)

// errPortTaken is why a start is worth another try.
var errPortTaken = errors.New("a port was taken by another process in the meantime")

// localCluster is a local cluster that runs.
type localCluster struct {
	name        string
	binaries    string
	settings    localSettings
	folder      *runfolder.Folder
	authority   *authority.Authority
	plane       *envtest.ControlPlane
	servers     []process.Scripted // etcd and the API server, which envtest starts
	controllers map[string]*controller
	node        *node.Node // nil without one
	kubeconfig  string
	admin       *rest.Config
}

// startLocal starts a cluster, or leaves nothing.
func startLocal(ctx context.Context, name, binaries string, settings localSettings) (*localCluster, error) {
	folder, err := runfolder.New()
	if err != nil {
		return nil, err
	}
	cluster := &localCluster{
		name: name, binaries: binaries, settings: settings, folder: folder, controllers: map[string]*controller{},
	}
	if err := cluster.start(ctx); err != nil {
		return nil, errors.Join(explain(ctx, err), cluster.destroy())
	}
	return cluster, nil
}

func (c *localCluster) start(ctx context.Context) error {
	if err := c.startServers(ctx); err != nil {
		return err
	}
	kubeconfig, err := c.writeKubeconfig("", "admin", "system:masters")
	if err != nil {
		return err
	}
	c.kubeconfig = kubeconfig
	if c.admin, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig of its administrator: %w", err)
	}
	if !c.settings.withoutControllers {
		if err := c.startControllers(); err != nil {
			return err
		}
	}
	if c.settings.node != nil {
		if err := c.startNode(ctx, c.name+"-node"); err != nil {
			return err
		}
	}
	return c.waitUntilReady(ctx)
}

func (c *localCluster) log(name string) string { return c.folder.Path(logFolder, name+".log") }

// writeKubeconfig writes a kubeconfig for a user in groups into a folder in the cluster's, and returns its path. Its only
// context is the cluster's name.
func (c *localCluster) writeKubeconfig(folder, user string, groups ...string) (string, error) {
	pair, err := c.authority.Client(user, groups...)
	if err != nil {
		return "", err
	}
	serving := c.plane.APIServer.SecureServing
	config := clientcmdapi.NewConfig()
	config.Clusters[c.name] = &clientcmdapi.Cluster{
		Server: serving.URL("https", "").String(), CertificateAuthorityData: serving.CA,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key,
	}
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: user}
	config.CurrentContext = c.name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return c.folder.Write(filepath.Join(folder, strings.NewReplacer("/", "-", ":", "-").Replace(user)+".kubeconfig"), content)
}

// explain says why a start failed: it was cancelled, a port was taken, or something else.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// destroy ends everything and removes the folder. The parts are killed, not asked: nothing they would save is kept. If
// something of the node is left on the host, the folder is kept too, so that a sweep can find it.
func (c *localCluster) destroy() error {
	var left error
	switch {
	case c.node != nil:
		left = c.node.Destroy()
	case c.settings.node != nil:
		left = node.Sweep(c.folder.Path()) // it may have got as far as that
	}
	for _, controller := range c.controllers {
		controller.process.Kill()
	}
	c.killServers()
	if c.plane != nil {
		left = errors.Join(left, c.plane.Stop())
	}
	if left != nil {
		return left
	}
	return c.folder.Remove()
}
