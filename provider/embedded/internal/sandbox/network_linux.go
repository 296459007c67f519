package sandbox

import (
	"io"
	"net"
)

// connect sets up the address of the sandbox and its connections with the host. Only Connect adds more: its only
// interface is its loopback, which also has its address and that of the API server's Service.
func (s Spec) connect() error {
	service, _, err := net.SplitHostPort(s.APIService)
	if err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", s.Address + "/32", "dev", "lo"},
		{"address", "add", service + "/32", "dev", "lo"},
	} {
		if err := ip(s.Busybox, arguments...); err != nil {
			return err
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
	go Tunnel(proxy, dialInside)
	return nil
}

// dialInside connects the host with an address inside.
func dialInside(address string) (io.ReadWriteCloser, error) {
	return net.Dial("tcp", address) //nolint:gosec // inside the sandbox, only for the host
}
