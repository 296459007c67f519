// Package gotest runs a suite with `go test` and `ginkgo -p`, without the runner. Each process sets up its own environment on the cluster
// that KUBECONFIG selects.
package gotest

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

// Run runs the specs that are linked into the calling test binary. They end before the deadline of the test (go test -timeout), so that
// their objects are deleted.
func Run(t *testing.T, suite string) {
	kubeconfig := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if kubeconfig == "" {
		t.Skip("KUBECONFIG is not set: start one with `bin/runner cluster up`, or run the suites with `make run`")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("read kubeconfig %s: %v", kubeconfig, err)
	}
	settings := session.DefaultSettings()
	settings.Kubectl, _ = session.FindKubectl(t.Context(), "") // Absent contains the error
	options := environment.Options{Settings: settings, Run: environment.NewRunID(), Workers: 1, CustomKinds: true}
	limits, reporter := ginkgo.GinkgoConfiguration()
	deadline, limited := t.Deadline()
	if limited {
		reserve, cleanup := environment.Reserve(time.Until(deadline))
		deadline, options.CleanupTimeout = deadline.Add(-reserve), cleanup
	}
	prepared, err := environment.Setup(t.Context(), config, options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := prepared.Teardown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	session, err := session.Connect(config, prepared.Session(1))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	started := time.Now()
	if left := max(time.Until(deadline), time.Nanosecond); limited && (limits.Timeout == 0 || left < limits.Timeout) {
		limits.Timeout = left
	}
	ginkgo.RunSpecs(t, suite, limits, reporter, session.Decorate())
	t.Logf("%s on %s: %s", suite, prepared.ServerVersion(), time.Since(started).Round(time.Millisecond))
}
