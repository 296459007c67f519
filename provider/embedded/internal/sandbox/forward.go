package sandbox

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Forward connects every connection that a listener accepts with a new one to the address, until the listener is closed.
func Forward(listener net.Listener, network, address string) {
	for {
		taken, err := listener.Accept()
		if err != nil {
			return // it was closed
		}
		go func() {
			made, err := net.Dial(network, address)
			if err != nil {
				_ = taken.Close()
				return
			}
			join(taken, made)
		}()
	}
}

// join copies both ways until either side ends.
func join(one, other io.ReadWriteCloser) {
	var copied sync.WaitGroup
	var closing sync.Once
	half := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // the error does not matter
		closing.Do(func() { _ = errors.Join(one.Close(), other.Close()) })
	}
	copied.Go(func() { half(one, other) })
	copied.Go(func() { half(other, one) })
	copied.Wait()
}
