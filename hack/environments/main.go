// Command environments runs the suites on embedded clusters that are configured like production clusters: with admission policies,
// webhooks, quotas and controllers of other teams. No behavior may fail there, and every skip must name its cause.
// Use: make environments, or in the repository's root
//
//	go run ./hack/environments                      # all of them, and writes docs/environments.md
//	go run ./hack/environments -list
//	go run ./hack/environments -only kyverno        # some of them, separated by commas
//	go run ./hack/environments -table               # run nothing, and write docs/environments.md from the last reports
//	go run ./hack/environments -- --suite watch     # flags for the runner; expectations on counts are not checked
//
// The command fails when an environment does not meet its expectations. The reports are in bin/environments.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

const (
	// bin is where `make build` puts the runner and Kubernetes.
	bin = "bin"
	// document is the generated document.
	document = "docs/environments.md"
)

func main() {
	reexec.Init(map[string]func() error{embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) }})
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./hack/environments [-list] [-table] [-only NAME,...] [-- FLAGS OF THE RUNNER...]   in the repository's root")
		flag.PrintDefaults()
	}
	list := flag.Bool("list", false, "list the environments")
	table := flag.Bool("table", false, "run nothing, and write "+document+" from the last reports")
	only := flag.String("only", "", "run the environments with these `NAMES`, separated by commas")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(*only)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "environments:", err)
		os.Exit(2) //nolint:gocritic // stop has nothing left to do
	case *list:
		for _, environment := range chosen {
			fmt.Printf("%-24s %s\n", environment.name, environment.about)
		}
	default:
		if err := run(ctx, chosen, *table, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "environments:", err)
			os.Exit(1)
		}
	}
}

// choose returns the named environments, or all of them.
func choose(names string) ([]environment, error) {
	if names == "" {
		return environments, nil
	}
	var chosen []environment
	for name := range strings.SplitSeq(names, ",") {
		found, err := named(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, found)
	}
	return chosen, nil
}

func named(name string) (environment, error) {
	for _, environment := range environments {
		if environment.name == name {
			return environment, nil
		}
	}
	return environment{}, fmt.Errorf("there is no environment %q: -list lists them", name)
}

func run(ctx context.Context, chosen []environment, tableOnly bool, arguments []string) error {
	var rows []row
	var failures []error
	for _, environment := range chosen {
		result, err := environment.try(ctx, tableOnly, arguments)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed := []error{err}
		if err == nil {
			row := rowOf(environment, result)
			rows = append(rows, row)
			fmt.Println(row)
			failed = environment.expect.check(result, len(arguments) == 0)
		}
		for _, err := range failed {
			failures = append(failures, fmt.Errorf("%s: %w", environment.name, err))
			fmt.Println("  " + failures[len(failures)-1].Error())
		}
	}
	if len(rows) == len(environments) && len(arguments) == 0 {
		if err := os.WriteFile(document, []byte(markdown(rows)), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", document)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d expectations are not met, the first: %w", len(failures), failures[0])
	}
	return nil
}
