package embedded

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

const (
	loopback = "127.0.0.1"
	// etcdSocket and etcdPeerSocket are etcd's sockets in the state directory. Before 3.6 etcd accepts only names that look like a host and
	// a port.
	etcdSocket     = "etcd:0"
	etcdPeerSocket = "etcd:1"
	// serviceAccountKey is the file with the key that signs ServiceAccount tokens.
	serviceAccountKey = "service-account.key"
	// frontProxyDir contains the certificates with which the API server authenticates to aggregated API servers, and frontProxy is its name
	// there.
	frontProxyDir = "front-proxy"
	frontProxy    = "front-proxy-client"
	// oneProcessor saves the search of idle threads for work, on machines with few processors: components other than the API server are busy a
	// small part of the time. A setting of the user takes precedence.
	oneProcessor  = "GOMAXPROCS=1"
	fewProcessors = 4
	// admin is the name of the administrator, and tokenFile the file with the token.
	admin     = "admin"
	tokenFile = "tokens.csv"
)

// controlPlaneComponent is a started component of the control plane.
type controlPlaneComponent struct {
	*process.Process
	// address is the loopback address of its TLS endpoint; empty for etcd, which uses sockets.
	address string
}

// startControlPlane starts the control plane. The controllers start in parallel.
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

// startEtcd starts etcd. It listens only on sockets in the state directory, so that other users cannot reach it, and it needs no
// certificates and no port.
func (c *instance) startEtcd() error {
	return c.startComponent(etcd, "",
		"--name=local",
		"--data-dir="+c.dir.Path("etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls=unix://"+etcdSocket,
		"--listen-peer-urls=unix://"+etcdPeerSocket,
		// Its own addresses are required; nothing listens there.
		"--advertise-client-urls=http://localhost:2379",
		"--initial-advertise-peer-urls=http://localhost:2380",
		"--initial-cluster=local=http://localhost:2380",
	)
}

// startAPIServer starts the API server. It authenticates the administrator by a token, because it verifies certificates again with each request,
// and other users by client certificates.
func (c *instance) startAPIServer() error {
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("create the key of service accounts: %w", err)
	}
	tokenKey, err := c.dir.Write(serviceAccountKey, key)
	if err != nil {
		return err
	}
	c.adminToken = rand.Text()
	tokens, err := c.dir.Write(tokenFile, []byte(strings.Join([]string{c.adminToken, admin, admin, "system:masters"}, ",")+"\n"))
	if err != nil {
		return err
	}
	flags := []string{
		"--etcd-servers=unix://" + c.dir.Path(etcdSocket),
		"--client-ca-file=" + c.ca.File(),
		"--token-auth-file=" + tokens,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement,NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + tokenKey,
		"--service-account-signing-key-file=" + tokenKey,
		"--service-cluster-ip-range=" + serviceNetwork,
		"--allow-privileged",
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none", // endpoints of a Service must not be on loopback
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

// frontProxyFlags make the API server forward requests for aggregated APIs with the user in headers. Aggregated API servers trust these
// only with its certificate of a dedicated authority.
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

// apiServerFeatures enables features that are off by default and tested when enabled, if the version has them.
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

// controllerFeatures enables the controllers of these features.
func (c *instance) controllerFeatures() []string {
	if !c.servesPodGroups() {
		return nil
	}
	return []string{"--feature-gates=GenericWorkload=true"}
}

// servesPodGroups reports whether the version has the beta of PodGroups (KEP-4671).
func (c *instance) servesPodGroups() bool {
	return c.version.AtLeast(version.MustParseSemantic("v1.37.0"))
}

// startControllerManager starts the controller manager.
func (c *instance) startControllerManager() error {
	flags := append(append(c.controllerFeatures(), c.controllerNodeFlags()...),
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.dir.Path(serviceAccountKey),
		"--root-ca-file="+c.ca.File(),
	)
	return c.startController(controllerManager, append(flags, c.settings.controllerFlags...)...)
}

// startScheduler starts the scheduler.
func (c *instance) startScheduler() error { return c.startController(scheduler) }

// startController starts the scheduler or the controller manager as a user with its name, which has the permissions of Kubernetes' default
// roles.
func (c *instance) startController(name string, flags ...string) error {
	kubeconfig, err := c.writeKubeconfig("", "system:"+name)
	if err != nil {
		return err
	}
	return c.startServing(name, append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		// High enough that the clients' rate limits do not distort measurements.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}, flags...)...)
}

// startServing starts a component that serves TLS on a loopback port.
func (c *instance) startServing(name string, flags ...string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	certificate, key, err := c.ca.Server(name, net.ParseIP(loopback), net.ParseIP(kubernetesService))
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
	command := process.Command{
		Name: name, Binary: filepath.Join(c.binaries, name), Flags: flags,
		Cluster: c.dir.Path(), Log: c.log(name),
	}
	if name != apiServer && runtime.NumCPU() <= fewProcessors {
		command.Environment = []string{oneProcessor}
	}
	return c.run(name, command, address)
}

// run starts the command of a component.
func (c *instance) run(name string, command process.Command, address string) error {
	started, err := command.Start()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.components[name] = controlPlaneComponent{Process: started, address: address}
	return nil
}

// health returns the configuration for health checks of the controller manager or the scheduler.
func (c *instance) health(component controlPlaneComponent) *rest.Config {
	return &rest.Config{
		Host: "https://" + component.address, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.Certificate()},
	}
}

// freePort returns a free loopback port. Another process may take it before it is used; see errPortTaken.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port on loopback: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
