package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// openWay listens on a socket and joins every connection with a new one to the TCP address: the node's way to the API
// server, which listens on the host's loopback only. It ends when it is closed.
func openWay(socket, address string) (net.Listener, error) {
	way, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("open the node's way to the API server: %w", err)
	}
	go func() {
		for {
			inside, err := way.Accept()
			if err != nil {
				return // it was closed
			}
			go join(inside, address)
		}
	}()
	return way, nil
}

// join copies both ways between a connection and a new one to the address, until either side ends.
func join(inside net.Conn, address string) {
	outside, err := net.Dial("tcp", address)
	if err != nil {
		_ = inside.Close()
		return
	}
	var copied sync.WaitGroup
	var closing sync.Once
	half := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // an end like any other
		closing.Do(func() { _ = errors.Join(inside.Close(), outside.Close()) })
	}
	copied.Go(func() { half(inside, outside) })
	copied.Go(func() { half(outside, inside) })
	copied.Wait()
}
