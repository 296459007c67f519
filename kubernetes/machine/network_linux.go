package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// connect gives the machine its address and the two ways between it and the host. There are no others: it has no
// interface but its own loopback, on which its address is too.
func (s setup) connect() error {
	for _, arguments := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", s.Address + "/32", "dev", "lo"},
	} {
		if output, err := exec.Command(s.Busybox, arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w: %s", s.Busybox, arguments, err, output)
		}
	}
	outwards, err := net.Listen("tcp", s.Forward)
	if err != nil {
		return err
	}
	inwards, err := net.Listen("unix", s.Entrance)
	if err != nil {
		return err
	}
	go forward(outwards, s.ForwardTo)
	entrance := &http.Server{Handler: http.HandlerFunc(admit), ReadHeaderTimeout: time.Minute}
	go func() { _ = entrance.Serve(inwards) }() // it ends with the machine
	return nil
}

// forward joins every connection with a new one to the host's socket.
func forward(listener net.Listener, socket string) {
	for {
		inside, err := listener.Accept()
		if err != nil {
			return // it ends with the machine
		}
		go func() {
			outside, err := net.Dial("unix", socket)
			if err != nil {
				_ = inside.Close()
				return
			}
			join(inside, outside)
		}()
	}
}

// admit answers HTTP CONNECT, by which the API server reaches the kubelet.
func admit(response http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(response, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	inside, err := net.Dial("tcp", request.Host) //nolint:gosec // inside the machine, for the host alone
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

// join copies both ways until either side ends. It is written without variables of loops in closures: with an old
// version of Kubernetes this is compiled as the Go of its time, which shared them.
func join(one, other io.ReadWriteCloser) {
	var copied sync.WaitGroup
	var closing sync.Once
	half := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // an end like any other
		closing.Do(func() { _ = errors.Join(one.Close(), other.Close()) })
	}
	copied.Go(func() { half(one, other) })
	copied.Go(func() { half(other, one) })
	copied.Wait()
}
