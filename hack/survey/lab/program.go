package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Program is a controller or a server of another project that runs next to a cluster until it is stopped.
type Program struct {
	Binary    string
	Arguments []string
	// Environment is added to the environment of this process, as KEY=VALUE.
	Environment []string
	// Folder is a directory for the program's output, in the file log.
	Folder string
	// Ready is the URL that returns 200 when the program is ready. The certificate of its server is not verified.
	Ready string
}

const (
	// starting limits how long a program may take to become ready, and stopping how long it may take to end.
	starting, stopping = 3 * time.Minute, 10 * time.Second
	// outputShown is the number of bytes from the end of the output in an error.
	outputShown = 2000
)

// Start starts the program and waits until it is ready. The returned function stops it, and fails if the program has ended before.
func (p Program) Start(ctx context.Context) (stop func() error, err error) {
	output, err := os.Create(p.log())
	if err != nil {
		return nil, err
	}
	command := exec.Command(p.Binary, p.Arguments...)
	command.Env = append(os.Environ(), p.Environment...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, output.Close())
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		failed = command.Wait()
		close(ended)
	}()
	stop = func() error {
		defer func() { _ = output.Close() }()
		select {
		case <-ended:
			return fmt.Errorf("%s ended by itself: %w\n%s", p.Binary, failed, p.tail())
		default:
		}
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended: // its exit code does not matter after SIGTERM
		case <-time.After(stopping):
			_ = command.Process.Kill()
			<-ended
		}
		return nil
	}
	if err := p.awaitReady(ctx, ended); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not ready: %w\n%s", p.Binary, err, p.tail()), stop())
	}
	return stop, nil
}

// awaitReady waits until the program is ready, or has ended.
func (p Program) awaitReady(ctx context.Context, ended <-chan struct{}) error {
	insecure := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is on this machine
	}}
	defer insecure.CloseIdleConnections()
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, starting, true, func(ctx context.Context) (bool, error) {
		select {
		case <-ended:
			return false, errors.New("it ended")
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Ready, nil)
		if err != nil {
			return false, err
		}
		response, err := insecure.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

func (p Program) log() string { return filepath.Join(p.Folder, "log") }

// tail returns the end of the output.
func (p Program) tail() string {
	content, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-outputShown):])
}

// FreePort returns a free loopback address and its port.
func FreePort() (address string, port int, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), listener.Addr().(*net.TCPAddr).Port, nil
}
