package kubectl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

// Commands runs kubectl for a worker. It starts the proxy and creates the temporary directory for the first command.
type Commands struct {
	// Binary is the kubectl to run.
	Binary Binary
	// Run is the run's id, part of the directory's name.
	Run string
	// Recorded and Harness are clients of the cluster.
	Recorded, Harness *client.Client

	mu     sync.Mutex
	closed bool
	proxy  *proxy
	folder *statedir.Dir
	count  int
	// running are the commands that have not ended.
	running map[*Command]struct{}
}

var errClosed = errors.New("run kubectl: the worker ends")

// prepare starts the proxy and creates the directory, unless that was done.
func (c *Commands) prepare() error {
	if c.closed {
		return errClosed
	}
	if c.proxy != nil {
		return nil
	}
	folder, err := statedir.New(statedir.Kubectl.Of(c.Run))
	if err != nil {
		return err
	}
	c.folder, c.running = folder, map[*Command]struct{}{}
	c.proxy, err = startProxy(c.Recorded, c.Harness)
	return err
}

// MakeFolder creates a directory for the files of a spec. It is removed with the worker at the latest.
func (c *Commands) MakeFolder() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.prepare(); err != nil {
		return "", err
	}
	return os.MkdirTemp(c.folder.Path(), "spec-")
}

// Start starts kubectl in a namespace, with a standard input and arguments. It is killed when the context ends. The gate delays its
// requests.
func (c *Commands) Start(ctx context.Context, gate *Gate, namespace, input string, arguments ...string) (*Command, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	c.count++
	command := &Command{
		Arguments: arguments, commands: c, log: &requestLog{gate: gate}, ended: make(chan struct{}),
		kubeconfig: c.folder.Path(fmt.Sprintf("kubeconfig-%d", c.count)),
	}
	command.token = c.proxy.admit(command.log)
	err := c.writeKubeconfig(command.kubeconfig, gate.Prefix, namespace, command.token)
	if err == nil {
		err = command.start(ctx, strings.NewReader(input))
	}
	if err != nil {
		c.proxy.dismiss(command.token)
		return nil, fmt.Errorf("run kubectl: %w", err)
	}
	c.running[command] = struct{}{}
	return command, nil
}

// writeKubeconfig writes a kubeconfig for the proxy, whose API is below a prefix, that other users of this machine cannot read.
func (c *Commands) writeKubeconfig(path, prefix, namespace, token string) error {
	config := clientcmdapi.NewConfig()
	const name = "proxy"
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.proxy.url + prefix, CertificateAuthorityData: c.proxy.caBundle}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

func (c *Commands) end(command *Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proxy.dismiss(command.token)
	_ = os.Remove(command.kubeconfig) // otherwise removed with the directory
	delete(c.running, command)
}

// Close kills running commands and removes the directory. Nothing can be started afterwards.
func (c *Commands) Close() {
	c.mu.Lock()
	c.closed = true
	var running []*Command
	for command := range c.running {
		running = append(running, command)
	}
	c.mu.Unlock()
	for _, command := range running {
		command.kill()
	}
	if c.proxy != nil {
		c.proxy.close()
	}
	if c.folder != nil {
		_ = c.folder.Remove() // otherwise `runner cleanup` removes it
	}
}
