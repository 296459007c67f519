package sandbox

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestMainIsForNamespacesOfItsOwnOnly(t *testing.T) {
	input, output := io.Pipe()
	if err := Main(input, output); err == nil {
		t.Error("want an error, as this is the host")
	}
}

func TestForwardJoinsConnectionsUntilOneSideEnds(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			connection, err := echo.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(connection, connection, 4)
			_ = connection.Close()
		}
	}()
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	go Forward(listener, "tcp", echo.Addr().String())
	t.Cleanup(func() { _ = listener.Close(); _ = echo.Close() })

	connection, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, "ping"); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(connection); err != nil || string(said) != "ping" {
		t.Errorf("want an echo and then the end, got %q, %v", said, err)
	}
}
