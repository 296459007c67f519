// Package gotest lets `go test` and `ginkgo -p` run a suite without the runner. Each process makes a visit of its own
// to the cluster that KUBECONFIG names.
package gotest

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/framework"
)

// Run runs the specs that the calling test binary links in.
func Run(t *testing.T, suite string) {
	kubeconfig := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if kubeconfig == "" {
		t.Skip("KUBECONFIG names no cluster: start one with `bin/runner cluster up`, or run the suites with `make run`")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("read kubeconfig %s: %v", kubeconfig, err)
	}
	visit, err := framework.Begin(t.Context(), config, framework.VisitOptions{
		Run: framework.NewRunID(), Workers: 1,
		Settings: framework.Settings{Settle: framework.DefaultSettle, WaitTimeout: framework.DefaultWaitTimeout},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := visit.End(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	session, err := framework.Open(config, visit.Terms(1))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	started := time.Now()
	ginkgo.RunSpecs(t, suite, session.Decorate())
	t.Logf("%s on %s: %s", suite, visit.ServerVersion(), time.Since(started).Round(time.Millisecond))
}
