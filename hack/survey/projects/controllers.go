package projects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient/decoder"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
)

// controllers is a program with the controllers of a project that runs outside the cluster.
type controllers struct {
	Program string `json:"program"`
	// Arguments are templates of its arguments, for a place, and Configuration is a template of its configuration file; empty for none.
	Arguments     []string `json:"arguments"`
	Configuration string   `json:"configuration"`
	// Objects are the objects that it requires, as YAML documents.
	Objects string `json:"objects"`
	// Claimed is the resource for which a claim is written.
	Claimed string `json:"claimed"`
	// Explored are the resources whose controllers are explored. They are namespaced, and the controllers write their objects.
	Explored []string `json:"explored"`
	// Untested maps the resources that are not tested with them to the reasons.
	Untested map[string]string `json:"untested"`
}

// place contains the values for templates.
type place struct {
	Kubeconfig string
	// Configuration is the configuration file.
	Configuration string
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
func (p projects) startControllers(ctx context.Context, kubeconfig string, config *rest.Config) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var failed []error
		for _, one := range stops {
			failed = append(failed, one())
		}
		return errors.Join(failed...)
	}
	for _, project := range p.Projects {
		one, err := project.Controllers.start(ctx, kubeconfig, config)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start the controllers of %s: %w", project.Name, err), stop())
		}
		stops = append(stops, one)
	}
	return stop, nil
}

// start creates the objects that the program requires, starts it and waits until it is ready. The returned function stops it.
func (c controllers) start(ctx context.Context, kubeconfig string, config *rest.Config) (stop func() error, err error) {
	folder, err := os.MkdirTemp("", "controllers-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if err := c.createObjects(ctx, config); err != nil {
		return nil, err
	}
	where, err := newPlace(folder, kubeconfig)
	if err != nil {
		return nil, err
	}
	written, err := where.fill(c.Configuration)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(where.Configuration, []byte(written), 0o600); err != nil {
		return nil, err
	}
	var arguments []string
	for _, text := range c.Arguments {
		argument, err := where.fill(text)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, argument)
	}
	end, err := lab.Program{
		Binary: c.Program, Arguments: arguments, Folder: folder, Ready: "http://" + where.Health + "/readyz",
	}.Start(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(end(), os.RemoveAll(folder)) }, nil
}

// createObjects creates the objects that the program requires.
func (c controllers) createObjects(ctx context.Context, config *rest.Config) error {
	if c.Objects == "" {
		return nil
	}
	client, err := resources.New(config)
	if err != nil {
		return err
	}
	return decoder.DecodeEach(ctx, strings.NewReader(c.Objects), decoder.CreateHandler(client))
}

// newPlace returns a place with free ports, and certificates in a directory.
func newPlace(folder, kubeconfig string) (place, error) {
	health, _, err := lab.FreePort()
	if err != nil {
		return place{}, err
	}
	_, webhooks, err := lab.FreePort()
	if err != nil {
		return place{}, err
	}
	_, err = lab.WriteCertificate(folder, "localhost")
	return place{
		Kubeconfig: kubeconfig, Configuration: filepath.Join(folder, "configuration.yaml"), Certificates: folder, WebhookPort: webhooks, Health: health,
	}, err
}

// fill executes a template.
func (p place) fill(text string) (string, error) {
	parsed, err := template.New("controllers").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var filled strings.Builder
	err = parsed.Execute(&filled, p)
	return filled.String(), err
}
