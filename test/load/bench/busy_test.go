package bench

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/test/faults"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// A busy cluster contains 50,000 objects of other users: in each of 2,000 namespaces these, and the ServiceAccount and ConfigMap that
// Kubernetes creates.
const (
	otherNamespaces = 2000
	otherConfigMaps = 12
	otherSecrets    = 11
)

// quietRuns is the number of measured runs before the objects of other users are created.
const quietRuns = 3

// sample is the cost of runs.
type sample struct{ runs, seconds, requests float64 }

// BenchmarkFarCluster runs the suites on a cluster whose responses take 100 ms longer.
func BenchmarkFarCluster(b *testing.B) {
	proxy, kubeconfig := faults.Serve(b, clustertest.Cluster(b, "../../../bin").RESTConfig(), faults.Faults{Latency: 100 * time.Millisecond})
	far := sample{}
	for b.Loop() {
		far.add(b, proxy, kubeconfig)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(far.seconds/far.runs, "run-s")
	b.ReportMetric(far.requests/far.runs, "requests")
}

// BenchmarkBusyCluster compares runs on a cluster with many objects of other users with earlier runs on the same cluster: the duration and
// the number of requests must hardly differ.
func BenchmarkBusyCluster(b *testing.B) {
	cluster := clustertest.Cluster(b, "../../../bin")
	config := cluster.RESTConfig()
	proxy, kubeconfig := faults.Serve(b, config, faults.Faults{})
	quiet, busy := sample{}, sample{}
	for range quietRuns {
		quiet.add(b, proxy, kubeconfig)
	}
	began := time.Now()
	if err := populate(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	b.Logf("made the objects of others in %s", time.Since(began).Round(time.Second))
	for b.Loop() {
		busy.add(b, proxy, kubeconfig)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quiet.seconds/quiet.runs, "quiet-run-s")
	b.ReportMetric(busy.seconds/busy.runs, "busy-run-s")
	b.ReportMetric(busy.seconds/busy.runs/(quiet.seconds/quiet.runs), "times-as-long")
	b.ReportMetric(busy.requests/busy.runs/(quiet.requests/quiet.runs), "times-the-requests")
}

// add measures another run.
func (s *sample) add(b *testing.B, proxy *faults.Proxy, kubeconfig string) {
	b.Helper()
	folder, before := b.TempDir(), proxy.Passed()
	command := exec.Command(runner, "--kubeconfig", kubeconfig, "--disruptive", "--quiet", "--report-dir", folder)
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	whole, err := report.Read(filepath.Join(folder, "report.json"))
	if err != nil {
		b.Fatal(err)
	}
	s.runs++
	s.seconds += whole.End.Sub(whole.Start).Seconds()
	s.requests += float64(proxy.Passed() - before)
}

// populate creates the objects of other users.
func populate(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	making, ctx := errgroup.WithContext(ctx)
	making.SetLimit(32)
	for i := range otherNamespaces {
		making.Go(func() error { return furnish(ctx, client, fmt.Sprintf("other-%d", i)) })
	}
	return making.Wait()
}

// furnish creates a namespace of other users, with objects.
func furnish(ctx context.Context, client kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range otherConfigMaps {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("config-map-%d", i)}}
		if _, err := client.CoreV1().ConfigMaps(name).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for i := range otherSecrets {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("secret-%d", i)}}
		if _, err := client.CoreV1().Secrets(name).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
