package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/test/faults"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

const (
	// shardedResources is the number of custom resources to test, and shards the number of runners that share the work.
	shardedResources, shards = 50, 4
	// shardProcesses is the number of workers of each runner: few, so that waiting for responses dominates and not the processors.
	shardProcesses = 2
)

// BenchmarkShards compares one runner with several that test a shard each, with many resources and responses that take 100 ms longer. All
// runners use this machine: where it has few processors, they limit what shards can gain.
func BenchmarkShards(b *testing.B) {
	config := clustertest.Cluster(b, "../../../bin").RESTConfig()
	arguments := []string{"--suite", "watch", "--procs", fmt.Sprint(shardProcesses), "--quiet"}
	for i := range shardedResources {
		group := fmt.Sprintf("g%d.example.com", i)
		if err := define(b.Context(), config, fixtures.CustomResourceDefinition(group)); err != nil {
			b.Fatal(err)
		}
		arguments = append(arguments, "--resource", "things."+group)
	}
	_, kubeconfig := faults.Serve(b, config, faults.Faults{Latency: 100 * time.Millisecond})
	arguments = append(arguments, "--kubeconfig", kubeconfig)
	alone, sharded := time.Duration(0), time.Duration(0)
	for b.Loop() {
		alone += inShards(b, 1, arguments)
		sharded += inShards(b, shards, arguments)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(alone.Seconds()/float64(b.N), "one-s")
	b.ReportMetric(sharded.Seconds()/float64(b.N), "shards-s")
	b.ReportMetric(alone.Seconds()/sharded.Seconds(), "times-as-fast")
}

// inShards returns how long a run in a number of shards takes.
func inShards(b *testing.B, count int, arguments []string) time.Duration {
	b.Helper()
	began := time.Now()
	var running errgroup.Group
	for shard := 1; shard <= count; shard++ {
		running.Go(func() error {
			command := exec.CommandContext(b.Context(), runner, slices.Concat(arguments, []string{"--shard", fmt.Sprintf("%d/%d", shard, count), "--report-dir", b.TempDir()})...)
			output, err := command.CombinedOutput()
			if err != nil {
				return errors.Join(err, errors.New(string(output)))
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// define creates a CustomResourceDefinition.
func define(ctx context.Context, config *rest.Config, definition *unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err = definitions.Create(ctx, definition, metav1.CreateOptions{})
	return err
}
