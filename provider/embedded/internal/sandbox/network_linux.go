package sandbox

import (
	"fmt"
	"io"
	"net"
	"os/exec"
)

// connect sets up the address of the sandbox and its connections with the host. There are no others: its only interface is its
// loopback, which also has its address and that of the API server's Service.
func (s Spec) connect() error {
	service, _, err := net.SplitHostPort(s.APIService)
	if err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", s.Address + "/32", "dev", "lo"},
		{"ip", "address", "add", service + "/32", "dev", "lo"},
	} {
		if output, err := exec.Command(s.Busybox, arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w: %s", s.Busybox, arguments, err, output)
		}
	}
	apiServer, err := net.Listen("tcp", s.APIServer)
	if err != nil {
		return err
	}
	forContainers, err := net.Listen("tcp", s.APIService)
	if err != nil {
		return err
	}
	proxy, err := net.Listen("unix", s.ProxySocket)
	if err != nil {
		return err
	}
	go Forward(apiServer, "unix", s.APIProxySocket)
	go Forward(forContainers, "unix", s.APIProxySocket)
	go Tunnel(proxy, s.dial)
	return nil
}

// dial connects the API server with an address inside. A loopback address is one of the host, where webhooks and aggregated APIs of the
// run listen: nothing that the API server reaches listens on the loopback inside.
func (s Spec) dial(address string) (io.ReadWriteCloser, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host).IsLoopback() {
		return DialThrough(s.HostSocket, address)
	}
	return net.Dial("tcp", address) //nolint:gosec // inside the sandbox, only for the host
}
