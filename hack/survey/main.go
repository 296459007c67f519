// Command survey runs the suites on many implementations, versions and configurations of Kubernetes, and writes documents and claims with the
// results to docs. Use: make claims, make environments, make matrix, make projects, make stores, or in the repository's root
//
//	go run ./hack/survey environments -only kyverno   # -help lists the flags of each survey
//	go run ./hack/survey matrix -- --suite cascade    # flags for the runner; no document is written for a partial run
//
// The reports are in bin, in a directory with the name of the survey.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/claims"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/environments"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/matrix"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/projects"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/stores"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

var surveys = map[string]lab.Survey{
	"claims": claims.Survey, "environments": environments.Survey, "matrix": matrix.Survey, "projects": projects.Survey, "stores": stores.Survey,
}

func main() {
	reexec.Init(map[string]func() error{embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) }})
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	if len(os.Args) < 2 || surveys[os.Args[1]] == nil { //nolint:mnd // the program and the survey
		fmt.Fprintf(os.Stderr, "survey: name one of %s\n", strings.Join(slices.Sorted(maps.Keys(surveys)), ", "))
		os.Exit(2)
	}
	name := os.Args[1]
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	run := surveys[name](flags)
	_ = flags.Parse(os.Args[2:]) // it exits
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flags.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		if usage := new(lab.UsageError); errors.As(err, usage) {
			os.Exit(2) //nolint:gocritic // stop has nothing left to do
		}
		os.Exit(1)
	}
}
