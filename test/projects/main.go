// Command projects judges the custom resources of well-known projects by what every resource promises, without their
// controllers: their schemas, and what an API server makes of them. Which projects, in which versions, is in
// projects.yaml. Use: make projects, or in the repository's root
//
//	go run ./test/projects                    # and writes docs/projects.md
//	go run ./test/projects -- --suite watch   # flags for the runner; of a part, docs/projects.md is not written
//
// The definitions come from the Go module proxy. The reports are in bin/projects.
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
	"github.com/deletion-conformance/deletion-conformance/internal/kubebuild"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/test/runner"
)

const (
	// bin is where `make build` puts the runner and Kubernetes.
	bin = "bin"
	// reportFolder gets the reports.
	reportFolder = "bin/projects"
	// document is the table for readers.
	document = "docs/projects.md"
)

func main() {
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./test/projects [-- FLAGS OF THE RUNNER...]   in the repository's root")
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func run(ctx context.Context, arguments []string) error {
	chosen, err := readProjects()
	if err != nil {
		return err
	}
	for i := range chosen.Projects {
		if err := chosen.Projects[i].download(ctx); err != nil {
			return err
		}
	}
	judged, err := judge(ctx, chosen.resources(), func(cluster *provider.Local) error {
		return chosen.define(ctx, cluster.KubernetesRestConfig())
	}, arguments)
	if err != nil {
		return err
	}
	table := tableOf(judged, chosen)
	table.print(os.Stdout)
	if len(arguments) == 0 {
		fmt.Println("for readers:", document)
		if err := os.WriteFile(document, []byte(table.markdown()), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(table.problems...)
}

// judge judges resources on an embedded cluster on which they were defined.
func judge(ctx context.Context, resources []string, define func(*provider.Local) error, arguments []string) (judged v1alpha1.Report, err error) {
	binaries, err := kubebuild.Built(filepath.Join(bin, "kubernetes"), "")
	if err != nil {
		return judged, err
	}
	cluster := provider.NewLocal(binaries)
	kubeconfig, err := cluster.Create(ctx)
	if err != nil {
		return judged, err
	}
	defer func() { err = errors.Join(err, cluster.Destroy(context.WithoutCancel(ctx))) }()
	if err := define(cluster); err != nil {
		return judged, err
	}
	where := []string{"--kubeconfig", kubeconfig, "--procs", "8", "--resource", strings.Join(resources, ",")}
	return runner.Run(ctx, filepath.Join(bin, "runner"), reportFolder, append(where, arguments...)...)
}
