package sandbox

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain_HostNamespaces(t *testing.T) {
	input, output := io.Pipe()
	if err := Main(input, output); err == nil {
		t.Error("want an error, as this is the host")
	}
}

func TestForward(t *testing.T) {
	echo, socket := startEcho(t), listenUnix(t)
	go Forward(socket, "tcp", echo)

	connection, err := net.Dial("unix", socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	expectEcho(t, connection)
}

func TestTunnel(t *testing.T) {
	echo, socket := startEcho(t), listenUnix(t)
	go Tunnel(socket, DialHost)

	connection, err := DialThrough(socket.Addr().String(), echo)
	if err != nil {
		t.Fatal(err)
	}
	expectEcho(t, connection)
	const nobody = "127.0.0.1:1"
	if _, err := DialThrough(socket.Addr().String(), nobody); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("want a refused connection, got %v", err)
	}
}

// startEcho returns the address of a server that returns four bytes and then ends the connection.
func startEcho(t *testing.T) string {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
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
	return echo.Addr().String()
}

func listenUnix(t *testing.T) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-") // the path of t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); _ = os.RemoveAll(dir) })
	return listener
}

func expectEcho(t *testing.T, connection io.ReadWriter) {
	t.Helper()
	if _, err := io.WriteString(connection, "ping"); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(connection); err != nil || string(said) != "ping" {
		t.Errorf("want an echo and then the end, got %q, %v", said, err)
	}
}
