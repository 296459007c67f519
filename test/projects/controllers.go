package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
)

// controllers are those of a project, as one program that runs beside the cluster.
type controllers struct {
	Program string `json:"program"`
	// Arguments are templates for what it is given, of a place.
	Arguments []string `json:"arguments"`
	// Unjudged are the resources that are not judged with them, and why.
	Unjudged map[string]string `json:"unjudged"`
}

// place is what arguments can name.
type place struct {
	Kubeconfig string
	// Certificates is a folder with tls.crt and tls.key, for webhooks, which nothing calls.
	Certificates string
	WebhookPort  int
	// Health is the address that answers whether they are ready.
	Health string
}

const (
	// starting bounds how long controllers may take to be ready, and stopping how long to end.
	starting, stopping = time.Minute, 10 * time.Second
	// outputShown is how many bytes of what controllers have said last are shown where they fail.
	outputShown = 2000
)

// withControllers are the projects whose controllers can run, with these at work.
func (p projects) withControllers() projects {
	p.Projects = slices.DeleteFunc(slices.Clone(p.Projects), func(one project) bool { return one.Controllers == nil })
	p.controlled = true
	return p
}

// startControllers starts those of all projects and waits until they are ready. What it returns stops them, and fails where one
// has ended before.
func (p projects) startControllers(ctx context.Context, kubeconfig string) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var failed []error
		for _, one := range stops {
			failed = append(failed, one())
		}
		return errors.Join(failed...)
	}
	for _, project := range p.Projects {
		one, err := project.Controllers.start(ctx, kubeconfig)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start the controllers of %s: %w", project.Name, err), stop())
		}
		stops = append(stops, one)
	}
	return stop, nil
}

// start starts the program and waits until it is ready. What it returns stops it.
func (c controllers) start(ctx context.Context, kubeconfig string) (stop func() error, err error) {
	folder, err := os.MkdirTemp("", "controllers-")
	if err != nil {
		return nil, err
	}
	where, err := newPlace(folder, kubeconfig)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	arguments, err := where.fill(c.Arguments)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	log := filepath.Join(folder, "log")
	output, err := os.Create(log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	command := exec.Command(c.Program, arguments...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, output.Close(), os.RemoveAll(folder))
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		failed = command.Wait()
		close(ended)
	}()
	stop = func() error {
		defer func() { _ = errors.Join(output.Close(), os.RemoveAll(folder)) }()
		select {
		case <-ended:
			return fmt.Errorf("%s ended by itself: %w\n%s", c.Program, failed, tail(log))
		default:
		}
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended: // however it ended: it was told to
		case <-time.After(stopping):
			_ = command.Process.Kill()
			<-ended
		}
		return nil
	}
	if err := where.awaitReady(ctx); err != nil {
		said := tail(log)
		return nil, errors.Join(fmt.Errorf("%s is not ready: %w\n%s", c.Program, err, said), stop())
	}
	return stop, nil
}

// newPlace is a place with free ports, and with certificates in a folder.
func newPlace(folder, kubeconfig string) (place, error) {
	health, _, err := free()
	if err != nil {
		return place{}, err
	}
	_, webhooks, err := free()
	if err != nil {
		return place{}, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return place{}, err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600),
	)
	return place{Kubeconfig: kubeconfig, Certificates: folder, WebhookPort: webhooks, Health: health}, err
}

// free is an address on loopback, and its port, at which nothing listens.
func free() (address string, port int, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), listener.Addr().(*net.TCPAddr).Port, nil
}

// fill fills templates.
func (p place) fill(templates []string) ([]string, error) {
	var filled []string
	for _, text := range templates {
		parsed, err := template.New("argument").Option("missingkey=error").Parse(text)
		if err != nil {
			return nil, err
		}
		var argument strings.Builder
		if err := parsed.Execute(&argument, p); err != nil {
			return nil, err
		}
		filled = append(filled, argument.String())
	}
	return filled, nil
}

// awaitReady waits until what listens at the health address says that it is ready.
func (p place) awaitReady(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, starting, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Health+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// tail is the end of a file.
func tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-outputShown):])
}
