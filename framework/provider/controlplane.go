package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deletion-conformance/deletion-conformance/framework/provider/internal/authority"
	"github.com/deletion-conformance/deletion-conformance/framework/provider/internal/node"
	"github.com/deletion-conformance/deletion-conformance/framework/provider/internal/process"
	"github.com/deletion-conformance/deletion-conformance/framework/provider/internal/runfolder"
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
	loopback  = "127.0.0.1"
	// etcdSocket and etcdPeerSocket are the sockets etcd listens on, in the cluster's folder. Before 3.6 etcd only takes
	// names that look like a host and a port.
	etcdSocket     = "etcd:0"
	etcdPeerSocket = "etcd:1"
	// pollInterval is the time between two questions whether a part is ready.
	pollInterval = 30 * time.Millisecond
	// serviceAccountKey is the file in which envtest keeps the key that service account tokens are signed with.
	serviceAccountKey = "sa-signer.key"
)

// errPortTaken is why a start is worth another try.
var errPortTaken = errors.New("a port was taken by another process in the meantime")

// auditPolicy says what the audit log holds: every request's metadata, once, when it has been answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// localCluster is a local cluster that runs.
type localCluster struct {
	binaries   string
	settings   localSettings
	folder     *runfolder.Folder
	authority  *authority.Authority
	plane      *envtest.ControlPlane
	servers    []process.Scripted // etcd and the API server, which envtest starts
	controller map[string]*controller
	node       *node.Node // nil without one
	kubeconfig string
	admin      *rest.Config
}

// startLocal starts a cluster, or leaves nothing.
func startLocal(ctx context.Context, name, binaries string, settings localSettings) (*localCluster, error) {
	folder, err := runfolder.New()
	if err != nil {
		return nil, err
	}
	cluster := &localCluster{
		binaries: binaries, settings: settings, folder: folder, controller: map[string]*controller{},
	}
	if err := cluster.start(ctx, name); err != nil {
		return nil, errors.Join(explain(ctx, err), cluster.destroy())
	}
	return cluster, nil
}

func (c *localCluster) start(ctx context.Context, name string) error {
	if err := c.startServers(ctx); err != nil {
		return err
	}
	kubeconfig, err := c.writeKubeconfig(name, "admin", "system:masters")
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
		if err := c.startNode(ctx, name+"-node"); err != nil {
			return err
		}
	}
	return c.waitUntilReady(ctx)
}

// startServers starts etcd and the API server and waits until they are healthy.
func (c *localCluster) startServers(ctx context.Context) error {
	for _, folder := range []string{logFolder, "scripts", "etcd", "apiserver", "certificates"} {
		if _, err := c.folder.Make(folder); err != nil {
			return err
		}
	}
	var err error
	if c.authority, err = authority.New(c.folder.Path("certificates")); err != nil {
		return err
	}
	c.plane = &envtest.ControlPlane{}
	if err := c.configureEtcd(); err != nil {
		return err
	}
	if err := c.configureAPIServer(); err != nil {
		return err
	}
	started := make(chan struct{})
	go c.killWhenCancelled(ctx, started)
	err = c.plane.Start()
	close(started)
	for _, log := range []io.Writer{c.plane.Etcd.Out, c.plane.APIServer.Out} {
		err = errors.Join(err, log.(*os.File).Close()) // the processes have it open themselves
	}
	return errors.Join(c.withLastWords(err), ctx.Err())
}

// killWhenCancelled kills what envtest starts when the context ends before it has started everything: envtest takes no
// context, but notices that a process ends. One may be on its way at that moment, so it is done again and again.
func (c *localCluster) killWhenCancelled(ctx context.Context, started <-chan struct{}) {
	select {
	case <-started:
		return
	case <-ctx.Done():
	}
	for {
		c.killServers()
		select {
		case <-started:
			return
		case <-time.After(pollInterval):
		}
	}
}

// withLastWords adds to envtest's error what the process that it names said last.
func (c *localCluster) withLastWords(err error) error {
	for _, server := range c.servers {
		if err != nil && strings.Contains(err.Error(), "process "+server.Name+" ") {
			return fmt.Errorf("%w; the last lines of its log:\n%s", err, process.LastWords(server.Log))
		}
	}
	return err
}

// configureEtcd lets etcd speak on a socket in the folder only: other users cannot reach it, and it needs no
// certificates and no port. envtest asks for its health over HTTP, so that and the metrics are on a loopback port.
func (c *localCluster) configureEtcd() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	script, log, err := c.script(etcd)
	if err != nil {
		return err
	}
	health := &url.URL{Scheme: "http", Host: net.JoinHostPort(loopback, strconv.Itoa(port))}
	c.plane.Etcd = &envtest.Etcd{
		URL: health, Path: script, DataDir: c.folder.Path("etcd"), Out: log, Err: log, StartTimeout: readyTime,
	}
	c.plane.Etcd.Configure().
		Set("name", "local").
		Set("initial-cluster", "local=http://localhost:2380"). // a name for itself; nothing listens there
		Set("listen-metrics-urls", health.String()).
		Set("listen-client-urls", "unix://"+etcdSocket).
		Set("listen-peer-urls", "unix://"+etcdPeerSocket)
	return nil
}

// configureAPIServer sets what envtest leaves out or sets otherwise than a cluster does.
func (c *localCluster) configureAPIServer() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	script, log, err := c.script(apiServer)
	if err != nil {
		return err
	}
	c.plane.APIServer = &envtest.APIServer{
		Path: script, CertDir: c.folder.Path("apiserver"), Out: log, Err: log, StartTimeout: readyTime,
		SecureServing: envtest.SecureServing{
			ListenAddr: envtest.ListenAddr{Address: loopback, Port: strconv.Itoa(port)},
			Authn:      c.authority,
		},
	}
	arguments := c.plane.APIServer.Configure().
		Set("etcd-servers", "unix://"+c.folder.Path(etcdSocket)).
		Set("authorization-mode", "Node", "RBAC").
		Set("enable-admission-plugins", "OwnerReferencesPermissionEnforcement", "NodeRestriction").
		Disable("disable-admission-plugins"). // envtest disables ServiceAccount
		Set("advertise-address", loopback).
		Set("endpoint-reconciler-type", "none"). // no Service may have an endpoint on loopback
		Set("profiling", "false")
	if c.settings.node != nil {
		if err := c.showWayToNode(arguments); err != nil {
			return err
		}
	}
	if c.settings.auditLog != "" {
		return c.keepAuditLog(arguments)
	}
	return nil
}

// keepAuditLog makes the API server write the audit log.
func (c *localCluster) keepAuditLog(arguments *envtest.Arguments) error {
	policy, err := c.folder.Write("audit-policy.yaml", []byte(auditPolicy))
	if err != nil {
		return err
	}
	auditLog, err := filepath.Abs(c.settings.auditLog)
	if err != nil {
		return fmt.Errorf("find the audit log: %w", err)
	}
	arguments.Set("audit-policy-file", policy).Set("audit-log-path", auditLog)
	return nil
}

// script prepares one of envtest's processes: the script to start it by, and its log.
func (c *localCluster) script(name string) (string, *os.File, error) {
	scripted := process.Scripted{
		Name: name, Folder: c.folder.Path("scripts"), Cluster: c.folder.Path(), Log: c.log(name),
	}
	log, err := os.OpenFile(scripted.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("make the log of %s: %w", name, err)
	}
	script, err := process.Script(scripted.Folder, filepath.Join(c.binaries, name), c.folder.Path())
	if err != nil {
		return "", nil, errors.Join(err, log.Close())
	}
	c.servers = append(c.servers, scripted)
	return script, log, nil
}

func (c *localCluster) log(name string) string { return c.folder.Path(logFolder, name+".log") }

// writeKubeconfig writes a kubeconfig for a user in groups, with the cluster's name as its only context.
func (c *localCluster) writeKubeconfig(cluster, user string, groups ...string) (string, error) {
	pair, err := c.authority.Client(user, groups...)
	if err != nil {
		return "", err
	}
	serving := c.plane.APIServer.SecureServing
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server: serving.URL("https", "").String(), CertificateAuthorityData: serving.CA,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key,
	}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return c.folder.Write(strings.NewReplacer("/", "-", ":", "-").Replace(user)+".kubeconfig", content)
}

// alive is nil while every part runs.
func (c *localCluster) alive() error {
	for _, server := range c.servers {
		if err := server.Alive(); err != nil {
			return err
		}
	}
	for _, controller := range c.controller {
		if err := controller.process.Alive(); err != nil {
			return err
		}
	}
	if c.node != nil {
		return c.node.Alive()
	}
	return nil
}

// waitUntilReady waits until every part answers. It is over at once when one of them ends.
func (c *localCluster) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("not ready within %s", readyTime))
	defer cancel()
	for {
		if err := c.alive(); err != nil {
			return err
		}
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the control plane: %w; at last: %w", context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

// ready asks every part once.
func (c *localCluster) ready(ctx context.Context) error {
	if err := answers(ctx, c.admin, "/readyz"); err != nil {
		return err
	}
	for _, controller := range c.controller {
		if err := answers(ctx, controller.health, "/healthz"); err != nil {
			return err
		}
	}
	if c.node != nil && c.node.Running() {
		return c.nodeReady(ctx)
	}
	return nil
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

func (c *localCluster) killServers() {
	for _, server := range c.servers {
		server.Kill()
	}
}

// destroy ends everything and removes the folder. The parts are killed, not asked: nothing they would save is kept. If
// something of the node is left on the host, the folder is kept too, so that a sweep can find it.
func (c *localCluster) destroy() error {
	var left error
	if c.node != nil {
		left = c.node.Destroy()
	}
	for _, controller := range c.controller {
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

// freePort is a loopback port nobody listens on now. Somebody else may by the time it is used; see errPortTaken.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port on loopback: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
