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

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deletion-conformance/deletion-conformance/provider/internal/authority"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/process"
)

const (
	loopback = "127.0.0.1"
	// etcdSocket and etcdPeerSocket are the sockets etcd listens on, in the cluster's folder. Before 3.6 etcd only takes
	// names that look like a host and a port.
	etcdSocket     = "etcd:0"
	etcdPeerSocket = "etcd:1"
	// serviceAccountKey is the file in which envtest keeps the key that service account tokens are signed with.
	serviceAccountKey = "sa-signer.key"
)

// auditPolicy says what the audit log holds: every request's metadata, once, when it has been answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// startServers starts etcd and the API server and waits until they are healthy.
func (c *localCluster) startServers(ctx context.Context) error {
	for _, folder := range []string{logFolder, "scripts", "etcd", "apiserver", "certificates", userFolder} {
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

func (c *localCluster) killServers() {
	for _, server := range c.servers {
		server.Kill()
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

// freePort is a loopback port nobody listens on now. Somebody else may by the time it is used; see errPortTaken.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port on loopback: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
