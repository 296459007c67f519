package embedded

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/deletion-conformance/deletion-conformance/internal/certificates"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

const (
	loopback = "127.0.0.1"
	// etcdSocket and etcdPeerSocket are the sockets etcd listens on, in the state directory. Before 3.6 etcd only takes
	// names that look like a host and a port.
	etcdSocket     = "etcd:0"
	etcdPeerSocket = "etcd:1"
	// serviceAccountKey is the file with the key that service account tokens are signed with.
	serviceAccountKey = "service-account.key"
	// frontProxyDir is where the certificates are by which other API servers know this one, and frontProxy is what they call it.
	frontProxyDir = "front-proxy"
	frontProxy    = "front-proxy-client"
)

// controlPlaneComponent is a component of the control plane that was started.
type controlPlaneComponent struct {
	*process.Process
	// address is the loopback address it serves TLS on; empty for etcd, which speaks on sockets.
	address string
}

// startControlPlane starts the control plane. The controllers come up at the same time.
func (c *instance) startControlPlane(ctx context.Context) error {
	if err := c.startEtcd(); err != nil {
		return err
	}
	if err := c.waitUntil(ctx, "etcd", c.etcdListens); err != nil {
		return err
	}
	if err := c.startAPIServer(); err != nil {
		return err
	}
	if err := c.writeAdmin(); err != nil {
		return err
	}
	if err := c.waitUntil(ctx, "the API server", c.apiServerReady); err != nil || c.settings.withoutControllers {
		return err
	}
	if err := c.startControllerManager(); err != nil {
		return err
	}
	return c.startScheduler()
}

// startEtcd starts etcd. It speaks on sockets in the state directory only: other users cannot reach it, and it needs no
// certificates and no port.
func (c *instance) startEtcd() error {
	return c.startComponent(etcd, "",
		"--name=local",
		"--data-dir="+c.dir.Path("etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls=unix://"+etcdSocket,
		"--listen-peer-urls=unix://"+etcdPeerSocket,
		// Names for itself, which it wants; nothing listens there.
		"--advertise-client-urls=http://localhost:2379",
		"--initial-advertise-peer-urls=http://localhost:2380",
		"--initial-cluster=local=http://localhost:2380",
	)
}

// startAPIServer starts the API server. It takes its users from their client certificates.
func (c *instance) startAPIServer() error {
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	tokenKey, err := c.dir.Write(serviceAccountKey, key)
	if err != nil {
		return err
	}
	flags := []string{
		"--etcd-servers=unix://" + c.dir.Path(etcdSocket),
		"--client-ca-file=" + c.ca.File(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement,NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + tokenKey,
		"--service-account-signing-key-file=" + tokenKey,
		"--service-cluster-ip-range=10.0.0.0/16",
		"--allow-privileged",
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none", // no Service may have an endpoint on loopback
	}
	flags = append(flags, c.apiServerFeatures()...)
	for _, flagsOf := range []func() ([]string, error){c.frontProxyFlags, c.apiServerNodeFlags, c.auditFlags} {
		more, err := flagsOf()
		if err != nil {
			return err
		}
		flags = append(flags, more...)
	}
	return c.startServing(apiServer, append(flags, c.settings.apiServerFlags...)...)
}

// frontProxyFlags make the API server pass on what is asked of APIs that other servers serve, who learn from headers
// who asks. They believe them of the API server alone, by its certificate of an authority that signs no other.
func (c *instance) frontProxyFlags() ([]string, error) {
	dir, err := c.dir.Make(frontProxyDir)
	if err != nil {
		return nil, err
	}
	authority, err := certificates.New(dir)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Client(frontProxy)
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Write(frontProxy, pair)
	if err != nil {
		return nil, err
	}
	return []string{
		"--proxy-client-cert-file=" + certificate,
		"--proxy-client-key-file=" + key,
		"--requestheader-client-ca-file=" + authority.File(),
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}, nil
}

// apiServerFeatures turn on what is off by default and tested where it is on, if the version has it.
func (c *instance) apiServerFeatures() []string {
	switch {
	case c.version.LessThan(version.MustParseSemantic("v1.32.0")):
		return nil
	case !c.servesPodGroups():
		return []string{"--feature-gates=AllowUnsafeMalformedObjectDeletion=true"}
	}
	return []string{
		"--feature-gates=AllowUnsafeMalformedObjectDeletion=true,GenericWorkload=true",
		"--runtime-config=scheduling.k8s.io/v1beta1=true",
	}
}

// controllerFeatures turn on the controllers of what the API server has turned on.
func (c *instance) controllerFeatures() []string {
	if !c.servesPodGroups() {
		return nil
	}
	return []string{"--feature-gates=GenericWorkload=true"}
}

// servesPodGroups says whether the version has the beta of PodGroups (KEP-4671).
func (c *instance) servesPodGroups() bool {
	return c.version.AtLeast(version.MustParseSemantic("v1.37.0"))
}

// auditPolicy says what the audit log holds: every request's metadata, once, when it has been answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// auditFlags make the API server write the audit log, if there is to be one.
func (c *instance) auditFlags() ([]string, error) {
	if c.settings.auditLog == "" {
		return nil, nil
	}
	policy, err := c.dir.Write("audit-policy.yaml", []byte(auditPolicy))
	if err != nil {
		return nil, err
	}
	auditLog, err := filepath.Abs(c.settings.auditLog)
	if err != nil {
		return nil, fmt.Errorf("find the audit log: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + auditLog}, nil
}

// startControllerManager starts the controller manager.
func (c *instance) startControllerManager() error {
	return c.startController(controllerManager, append(c.controllerFeatures(),
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.dir.Path(serviceAccountKey),
		"--root-ca-file="+c.ca.File(),
	)...)
}

// startScheduler starts the scheduler.
func (c *instance) startScheduler() error { return c.startController(scheduler) }

// startController starts one of the two as a user of its own name, whose rights are the ones Kubernetes ships for it.
func (c *instance) startController(name string, flags ...string) error {
	kubeconfig, err := c.writeKubeconfig("", "system:"+name)
	if err != nil {
		return err
	}
	return c.startServing(name, append(flags,
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		// So high that the cluster, not its clients' throttles, is what is measured.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	)...)
}

// startServing starts a component that serves TLS on a loopback port.
func (c *instance) startServing(name string, flags ...string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	certificate, key, err := c.ca.Server(name, net.ParseIP(loopback))
	if err != nil {
		return err
	}
	return c.startComponent(name, net.JoinHostPort(loopback, strconv.Itoa(port)), append(flags,
		"--bind-address="+loopback,
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+certificate,
		"--tls-private-key-file="+key,
		"--profiling=false",
	)...)
}

func (c *instance) startComponent(name, address string, flags ...string) error {
	started, err := process.Command{
		Name: name, Binary: filepath.Join(c.binaries, name), Flags: flags,
		Cluster: c.dir.Path(), Log: c.log(name),
	}.Start()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.components[name] = controlPlaneComponent{Process: started, address: address}
	return nil
}

// health is how to ask the controller manager or the scheduler whether it is healthy.
func (c *instance) health(component controlPlaneComponent) *rest.Config {
	return &rest.Config{
		Host: "https://" + component.address, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.Certificate()},
	}
}

// freePort is a loopback port nobody listens on now. Somebody else may by the time it is used; see errPortTaken.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port on loopback: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
