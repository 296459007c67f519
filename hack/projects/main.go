// Command projects tests the custom resources of well-known projects with the behaviors of every resource. If a project's controllers can
// be built, its resources are tested once more with running controllers. projects.yaml contains the projects and versions. Use: make
// projects, or in the repository's root
//
//	go run ./hack/projects                    # and writes docs/projects.md, and claims to docs/results
//	go run ./hack/projects -- --suite watch   # flags for the runner; docs/projects.md is not written for a partial run
//	go run ./hack/projects -again             # test nothing, and write docs/projects.md from the existing reports
//
// The definitions come from the Go module proxy. The reports are in bin/projects and bin/projects-controlled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/internal/results"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

const (
	// bin is where `make build` puts the runner and Kubernetes.
	bin = "bin"
	// document is the generated document.
	document = "docs/projects.md"
)

func main() {
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./hack/projects [-again] [-- FLAGS OF THE RUNNER...]   in the repository's root")
		flag.PrintDefaults()
	}
	again := flag.Bool("again", false, "test nothing, and write "+document+" of the reports that there are: after an explanation was added")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *again, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func run(ctx context.Context, again bool, arguments []string) error {
	chosen, err := readProjects()
	if err != nil {
		return err
	}
	for i := range chosen.Projects {
		if err := chosen.Projects[i].download(ctx); err != nil {
			return err
		}
	}
	tables := []table{}
	for _, part := range []projects{chosen, chosen.withControllers()} {
		var tested v1alpha1.Report
		if again {
			tested, err = runnertest.Report(part.reportFolder())
		} else {
			tested, err = part.test(ctx, arguments)
		}
		if err != nil {
			return err
		}
		table := tableOf(tested, part)
		table.print(os.Stdout)
		tables = append(tables, table)
	}
	if len(arguments) == 0 {
		fmt.Println("wrote", document)
		if err := os.WriteFile(document, []byte(markdown(tables[0], tables[1])), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(append(tables[0].problems, tables[1].problems...)...)
}

// reportFolder is the directory of the reports.
func (p projects) reportFolder() string {
	if p.controlled {
		return filepath.Join(bin, "projects-controlled")
	}
	return filepath.Join(bin, "projects")
}

// test tests the resources on an embedded cluster, with controllers if required.
func (p projects) test(ctx context.Context, arguments []string) (tested v1alpha1.Report, err error) {
	binaries, err := build.Find(filepath.Join(bin, "kubernetes"), "")
	if err != nil {
		return tested, err
	}
	cluster := embedded.New(binaries)
	if err := cluster.Create(ctx); err != nil {
		return tested, err
	}
	kubeconfig := cluster.Kubeconfig()
	defer func() { err = errors.Join(err, cluster.Destroy()) }()
	if err := p.define(ctx, cluster.RESTConfig()); err != nil {
		return tested, err
	}
	if p.controlled {
		stop, started := p.startControllers(ctx, kubeconfig, cluster.RESTConfig())
		if started != nil {
			return tested, started
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if p.controlled && len(arguments) == 0 {
		if err := p.claim(ctx, kubeconfig); err != nil {
			return tested, err
		}
	}
	where := []string{"--kubeconfig", kubeconfig, "--procs", "8", "--resource", strings.Join(p.resources(), ",")}
	return runnertest.Run(ctx, filepath.Join(bin, "runner"), p.reportFolder(), append(where, arguments...)...)
}

// claim writes a claim about one resource of each project with controllers.
func (p projects) claim(ctx context.Context, kubeconfig string) error {
	for _, project := range p.Projects {
		name := strings.ToLower(strings.ReplaceAll(project.Name, " ", "-"))
		reports := filepath.Join(bin, "projects-claimed", name)
		if _, err := runnertest.Run(ctx, filepath.Join(bin, "runner"), reports, "--kubeconfig", kubeconfig, "--slow", "--redact",
			"--resource", project.Controllers.Claimed); err != nil {
			return err
		}
		if err := results.Write(reports, name, strings.TrimPrefix(project.Version, "v"), "make projects"); err != nil {
			return err
		}
	}
	return nil
}
