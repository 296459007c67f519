package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// DialHost connects to an address of this machine, for Tunnel.
func DialHost(address string) (io.ReadWriteCloser, error) {
	return net.Dial("tcp", address) //nolint:gosec // the socket is in a directory of this user
}

// Tunnel serves HTTP CONNECT until the listener is closed.
func Tunnel(listener net.Listener, dial func(address string) (io.ReadWriteCloser, error)) {
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		tunnel(response, request, dial)
	})}
	_ = server.Serve(listener)
}

func tunnel(response http.ResponseWriter, request *http.Request, dial func(address string) (io.ReadWriteCloser, error)) {
	if request.Method != http.MethodConnect {
		http.Error(response, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	made, err := dial(request.RequestURI)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadGateway)
		return
	}
	taken, buffered, err := http.NewResponseController(response).Hijack()
	if err != nil {
		_ = made.Close()
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(taken, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = errors.Join(made.Close(), taken.Close())
		return
	}
	join(bufferedConnection{buffered, taken}, made)
}

// DialThrough connects to an address through a socket that Tunnel serves.
func DialThrough(socket, address string) (io.ReadWriteCloser, error) {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	buffered := bufio.NewReader(connection)
	response, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // it is the connection
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	if response.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(response.Body)
		return nil, errors.Join(fmt.Errorf("connect to %s on the host: %s: %s", address, response.Status, message), connection.Close())
	}
	return bufferedConnection{buffered, connection}, nil
}

// bufferedConnection is a connection of which something was already read.
type bufferedConnection struct {
	io.Reader
	io.WriteCloser
}
