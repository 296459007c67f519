package provider

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/provider/internal/process"
)

// stopTime is how long a part that is asked to end may take before it is killed.
const stopTime = 10 * time.Second

// controller is the controller manager or the scheduler.
type controller struct {
	process *process.Process
	// health is how to ask it whether it is healthy.
	health *rest.Config
}

// startControllers starts the controller manager and the scheduler. They come up at the same time.
func (c *localCluster) startControllers() error {
	for _, name := range []string{controllerManager, scheduler} {
		if err := c.startController(name); err != nil {
			return err
		}
	}
	return nil
}

// startController starts one of the two as a user of its own name, whose rights are the ones Kubernetes ships for it.
func (c *localCluster) startController(name string) error {
	if running := c.controllers[name]; running != nil && running.process.Alive() == nil {
		return fmt.Errorf("start %s: it is running already", name)
	}
	kubeconfig, err := c.writeKubeconfig("", "system:"+name)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	certificate, key, err := c.authority.Server(name, net.ParseIP(loopback))
	if err != nil {
		return err
	}
	arguments := []string{
		"--kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + certificate,
		"--tls-private-key-file=" + key,
		"--leader-elect=false",
		"--profiling=false",
		// So high that the cluster, not its clients' throttles, is what is measured.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
	if name == controllerManager {
		more, err := c.controllerManagerArguments()
		if err != nil {
			return err
		}
		arguments = append(arguments, more...)
	}
	started, err := process.Command{
		Name: name, Binary: filepath.Join(c.binaries, name), Arguments: arguments,
		Cluster: c.folder.Path(), Log: c.log(name),
	}.Start()
	if err != nil {
		return err
	}
	c.controllers[name] = &controller{process: started, health: &rest.Config{
		Host:            "https://" + net.JoinHostPort(loopback, strconv.Itoa(port)),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.Certificate()},
	}}
	return nil
}

func (c *localCluster) controllerManagerArguments() ([]string, error) {
	root, err := c.folder.Write("root-ca.crt", c.plane.APIServer.CA)
	if err != nil {
		return nil, err
	}
	return []string{
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + filepath.Join(c.plane.APIServer.CertDir, serviceAccountKey),
		"--root-ca-file=" + root,
	}, nil
}

// stopController ends one of the two.
func (c *localCluster) stopController(ctx context.Context, name string) error {
	running := c.controllers[name]
	if running == nil {
		return fmt.Errorf("stop %s: it is not running", name)
	}
	delete(c.controllers, name)
	running.process.Stop(ctx, stopTime)
	return nil
}
