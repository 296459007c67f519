package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8s.io/client-go/util/cert"

	"github.com/deletion-conformance/deletion-conformance/hack/internal/program"
)

// controllers is a program with the controllers of a project that runs outside the cluster.
type controllers struct {
	Program string `json:"program"`
	// Arguments are templates of its arguments, for a place.
	Arguments []string `json:"arguments"`
	// Claimed is the resource for which a claim is written.
	Claimed string `json:"claimed"`
	// Untested maps the resources that are not tested with them to the reasons.
	Untested map[string]string `json:"untested"`
}

// place contains the values for arguments.
type place struct {
	Kubeconfig string
	// Certificates is a directory with tls.crt and tls.key for webhooks, which are not called.
	Certificates string
	WebhookPort  int
	// Health is the address of the readiness endpoint.
	Health string
}

// withControllers returns the projects whose controllers can run, with running controllers.
func (p projects) withControllers() projects {
	p.Projects = slices.DeleteFunc(slices.Clone(p.Projects), func(one project) bool { return one.Controllers == nil })
	p.controlled = true
	return p
}

// startControllers starts the controllers of all projects and waits until they are ready. The returned function stops them, and fails if
// one has ended before.
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

// start starts the program and waits until it is ready. The returned function stops it.
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
	end, err := program.Program{
		Binary: c.Program, Arguments: arguments, Folder: folder, Ready: "http://" + where.Health + "/readyz",
	}.Start(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return func() error { return errors.Join(end(), os.RemoveAll(folder)) }, nil
}

// newPlace returns a place with free ports, and certificates in a directory.
func newPlace(folder, kubeconfig string) (place, error) {
	health, _, err := program.FreePort()
	if err != nil {
		return place{}, err
	}
	_, webhooks, err := program.FreePort()
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

// fill executes templates.
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
