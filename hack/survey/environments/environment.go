package environments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// environment is a configuration of a production cluster.
type environment struct {
	// name selects it with -only.
	name string
	// about describes it in a sentence.
	about string
	// options configure the cluster before it starts. They may write files into the folder.
	options func(folder string) ([]embedded.Option, error)
	// parts configure the running cluster, in this order.
	parts []part
	// arguments are flags of the runner.
	arguments []string
	expect    expectation
}

// part is a step that configures a cluster before the run.
type part func(ctx context.Context, site *site) error

// result is the result of an environment.
type result struct {
	report v1alpha1.Report
	ending
}

// ending is the part of the result that the report does not contain.
type ending struct {
	// Code is the exit code of the runner.
	Code int `json:"code"`
	// Harm lists changes that the run made to objects of the environment.
	Harm []string `json:"harm,omitempty"`
}

// timeout limits the runner in one environment. A run without failures takes a minute or two.
const timeout = 15 * time.Minute

func (e environment) folder() string { return filepath.Join(lab.Bin, "environments", e.name) }

func (e environment) endingFile() string { return filepath.Join(e.folder(), "ending.json") }

// try runs the environment, unless only the last result is wanted, and reads its result.
func (e environment) try(ctx context.Context, tableOnly bool, arguments []string) (result, error) {
	if !tableOnly {
		if err := e.run(ctx, arguments); err != nil {
			return result{}, err
		}
	}
	return e.result()
}

// run starts a cluster, configures it, and runs the suites on it.
func (e environment) run(ctx context.Context, arguments []string) (err error) {
	site, err := e.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.stop()) }()
	for _, install := range e.parts {
		if err := install(ctx, site); err != nil {
			return fmt.Errorf("configure the cluster: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kubectl, err := lab.Kubectl(ctx)
	if err != nil {
		return err
	}
	flags := append([]string{"--kubeconfig", site.kubeconfig, "--kubectl", kubectl}, e.arguments...)
	code, err := runnertest.Exit(ctx, site.runner, e.folder(), append(flags, arguments...)...)
	if err != nil {
		return err
	}
	written, err := json.Marshal(ending{Code: code, Harm: site.harm.list()})
	if err != nil {
		return err
	}
	return os.WriteFile(e.endingFile(), written, 0o644)
}

// start starts the cluster.
func (e environment) start(ctx context.Context) (*site, error) {
	folder, err := os.MkdirTemp("", "environment-")
	if err != nil {
		return nil, err
	}
	var options []embedded.Option
	if e.options != nil {
		if options, err = e.options(folder); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
	}
	return newSite(ctx, folder, options...)
}

// result reads the result of the last run.
func (e environment) result() (result, error) {
	report, err := runnertest.Report(e.folder())
	if err != nil {
		return result{}, err
	}
	read := result{report: report}
	content, err := os.ReadFile(e.endingFile())
	if err != nil {
		return result{}, err
	}
	return read, json.Unmarshal(content, &read.ending)
}
