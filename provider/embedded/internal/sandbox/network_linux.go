package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"time"
)

// connect gives the sandbox its address and the two ways between it and the host. There are no others: it has no
// interface but its own loopback, on which its address is too.
func (s Spec) connect() error {
	for _, arguments := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", s.Address + "/32", "dev", "lo"},
	} {
		if output, err := exec.Command(s.Busybox, arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w: %s", s.Busybox, arguments, err, output)
		}
	}
	apiServer, err := net.Listen("tcp", s.APIServer)
	if err != nil {
		return err
	}
	proxy, err := net.Listen("unix", s.ProxySocket)
	if err != nil {
		return err
	}
	go Forward(apiServer, "unix", s.APIProxySocket)
	server := &http.Server{Handler: http.HandlerFunc(tunnel), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(proxy) }() // it ends with the sandbox
	return nil
}

// tunnel answers HTTP CONNECT, by which the API server reaches the kubelet.
func tunnel(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(response, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	inside, err := net.Dial("tcp", request.Host) //nolint:gosec // inside the sandbox, for the host alone
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadGateway)
		return
	}
	outside, buffered, err := http.NewResponseController(response).Hijack()
	if err != nil {
		_ = inside.Close()
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(outside, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = errors.Join(inside.Close(), outside.Close())
		return
	}
	join(struct {
		io.Reader
		io.WriteCloser
	}{buffered, outside}, inside)
}
