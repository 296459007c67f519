package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

const namespace = metav1.NamespaceDefault

// images are the images of a node in these tests.
var images = embedded.Images{
	Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage,
}

// binaries returns the directory of the newest Kubernetes that was built; the test is skipped when there is none.
func binaries(t *testing.T) string {
	t.Helper()
	_ = os.Getenv("TEST_RUN") // so that Go does not cache the results, because it does not know what a cluster is built from
	built, err := filepath.Glob("../../bin/kubernetes/v*/kube-apiserver")
	if wanted := os.Getenv("KUBERNETES_VERSION"); wanted != "" {
		built, err = filepath.Glob("../../bin/kubernetes/v" + wanted + "/kube-apiserver")
	}
	if err != nil || len(built) == 0 {
		t.Skip("no Kubernetes in bin/kubernetes: build it with make build")
	}
	return filepath.Dir(slices.Max(built))
}

// create starts a cluster that is destroyed when the test ends.
func create(t *testing.T, options ...embedded.Option) *embedded.Cluster {
	t.Helper()
	local := embedded.New(binaries(t), options...)
	start := time.Now()
	if err := local.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(start).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := local.Destroy(); err != nil {
			t.Error(err)
		}
	})
	return local
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, timeout time.Duration, what string, holds func() bool) {
	t.Helper()
	NewWithT(t).Eventually(holds).WithTimeout(timeout).WithPolling(50*time.Millisecond).Should(BeTrue(), what)
}

func restartAPIServer(t *testing.T, local *embedded.Cluster) {
	t.Helper()
	for range 2 {
		if err := component.Stop(t.Context(), local.Features().Components, component.APIServer); err != nil {
			t.Fatal(err)
		}
	}
	if err := local.Alive(); err != nil {
		t.Errorf("a component that was killed through the socket is not missing: %v", err)
	}
	for range 2 {
		if err := component.Start(t.Context(), local.Features().Components, component.APIServer); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCluster_RestartControllerManager(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	local := create(t, embedded.WithAuditLog(audit))
	maps := clientFor(t, local.RESTConfig()).CoreV1().ConfigMaps(namespace)

	owner, err := maps.Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}
	if _, err := maps.Create(t.Context(), configMap("child", reference), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is idempotent
		if err := component.Stop(t.Context(), local.Features().Components, component.ControllerManager); err != nil {
			t.Fatal(err)
		}
	}
	if err := local.Alive(); err != nil {
		t.Errorf("a component that was stopped is not missing: %v", err)
	}
	if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "child", metav1.GetOptions{}); err != nil {
		t.Errorf("without a controller manager the dependent stays, but: %v", err)
	}
	for range 2 {
		if err := component.Start(t.Context(), local.Features().Components, component.ControllerManager); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 30*time.Second, "the dependent is collected", func() bool {
		_, err := maps.Get(t.Context(), "child", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if err := local.Alive(); err != nil {
		t.Error(err)
	}
	restartAPIServer(t, local)
	if _, err := maps.Get(t.Context(), "child", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("want the same API server at the same address, got: %v", err)
	}
	if err := component.Stop(t.Context(), local.Features().Components, component.Kubelet); !errors.Is(err, component.ErrUnsupported) {
		t.Errorf("want to be told that there is no kubelet, got: %v", err)
	}

	logged, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"requestURI":"/api/v1/namespaces/default/configmaps/owner","verb":"delete"`; !strings.Contains(string(logged), want) {
		t.Errorf("the audit log fails %s", want)
	}
	exported := filepath.Join(t.TempDir(), "logs")
	if err := local.ExportLogs(exported); err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if info, err := os.Stat(filepath.Join(exported, component+".log")); err != nil || info.Size() == 0 {
			t.Errorf("the log of %s is missing or empty: %v", component, err)
		}
	}
}

// mayDoNothingAtFirst shows that new users, and users without a name, are refused.
func mayDoNothingAtFirst(t *testing.T, local *embedded.Cluster) {
	t.Helper()
	kubeconfig, err := local.AddUser("somebody", "some-group")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	_, err = clientFor(t, config).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "somebody"`) {
		t.Errorf("want somebody to be refused, got: %v", err)
	}
	anonymous := rest.AnonymousClientConfig(local.RESTConfig())
	_, err = clientFor(t, anonymous).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("want nobody in particular to be refused, got: %v", err)
	}
}

func TestCreate_MissingBinary(t *testing.T) {
	err := embedded.New(t.TempDir()).Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no etcd in") || !strings.Contains(err.Error(), "make build") {
		t.Errorf("want the missing binary and the remedy, got: %v", err)
	}
}

func TestCreate_Failure(t *testing.T) {
	broken := t.TempDir()
	temporary := temporaryDir(t)
	writeScript(t, broken, "etcd", "echo etcd has no legs >&2; exit 3")
	writeScript(t, broken, "kube-apiserver", "echo Kubernetes v1.36.3")
	err := embedded.New(broken, embedded.WithoutControllers()).Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "etcd has no legs") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("want etcd's status and the last lines of its log, got: %v", err)
	}
	t.Log(err)
	leftInDir(t, temporary)
}

func TestCreate_PortTaken(t *testing.T) {
	broken := t.TempDir()
	temporary := temporaryDir(t)
	starts := filepath.Join(broken, "starts")
	writeScript(t, broken, "etcd", "echo start >>'"+starts+"'; echo 'listen tcp 127.0.0.1:1: bind: address already in use' >&2; exit 1")
	writeScript(t, broken, "kube-apiserver", "echo Kubernetes v1.36.3")
	if err := embedded.New(broken, embedded.WithoutControllers()).Create(t.Context()); err == nil {
		t.Error("want an error in the end")
	}
	if content, err := os.ReadFile(starts); err != nil || strings.Count(string(content), "start") != 3 {
		t.Errorf("want three starts, got %q, %v", content, err)
	}
	leftInDir(t, temporary)
}

// writeScript writes a shell script instead of a binary.
func writeScript(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestCluster_Features(t *testing.T) {
	always := []v1alpha1.Feature{
		v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode, v1alpha1.Hook, v1alpha1.PodNetwork,
	}
	for name, test := range map[string]struct {
		options     []embedded.Option
		supported   []v1alpha1.Feature
		unsupported map[v1alpha1.Feature]string
	}{
		"with a node": {
			[]embedded.Option{embedded.WithNodes(1, images)},
			append(slices.Clone(always), v1alpha1.GC, v1alpha1.KCM, v1alpha1.Node),
			map[v1alpha1.Feature]string{v1alpha1.TwoNodes: "without a second node"},
		},
		"with two nodes": {
			[]embedded.Option{embedded.WithNodes(2, images)},
			append(slices.Clone(always), v1alpha1.GC, v1alpha1.KCM, v1alpha1.Node), nil, // the run looks for the second itself
		},
		"without a node": {
			nil, append(slices.Clone(always), v1alpha1.GC, v1alpha1.KCM),
			map[v1alpha1.Feature]string{v1alpha1.Node: "without a node", v1alpha1.TwoNodes: "without a second node"},
		},
		"without a node, for a reason": {
			[]embedded.Option{embedded.Unsupported("nobody wants one", v1alpha1.Node, v1alpha1.TwoNodes)}, append(slices.Clone(always), v1alpha1.GC, v1alpha1.KCM),
			map[v1alpha1.Feature]string{v1alpha1.Node: "nobody wants one", v1alpha1.TwoNodes: "nobody wants one"},
		},
		"without controllers": {
			[]embedded.Option{embedded.WithoutControllers()}, always,
			map[v1alpha1.Feature]string{
				v1alpha1.GC: "without controllers", v1alpha1.KCM: "without controllers",
				v1alpha1.Node: "without a node", v1alpha1.TwoNodes: "without a second node",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			features := embedded.New("", test.options...).Features()
			if !slices.Equal(features.Supported, test.supported) || len(features.Unsupported) != len(test.unsupported) {
				t.Errorf("got %+v", features)
			}
			for feature, reason := range test.unsupported {
				if !strings.Contains(features.Unsupported[feature], reason) {
					t.Errorf("%s: want %q, got %q", feature, reason, features.Unsupported[feature])
				}
			}
		})
	}
}

func TestCreate_Canceled(t *testing.T) {
	dir := binaries(t)
	temporary := temporaryDir(t)
	for _, timeout := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 1700 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		start := time.Now()
		local := embedded.New(dir)
		err := local.Create(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("canceled after %s: want its reason, got: %v", timeout, err)
		}
		if late := time.Since(start) - timeout; late > 2*time.Second {
			t.Errorf("canceled after %s: returned %s later", timeout, late)
		}
		leftInDir(t, temporary)
	}
}

// temporaryDir creates a short directory and uses it for temporary files.
func temporaryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "provider-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// leftInDir fails the test if the directory is not empty.
func leftInDir(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("left behind: %s", filepath.Join(dir, entry.Name()))
	}
}

const (
	// runnerVariable makes the test binary a runner that starts a cluster, prints its location and waits to be killed.
	runnerVariable = "PROVIDER_TEST_RUNNER"
	// nodeVariable adds a node to that cluster.
	nodeVariable = "PROVIDER_TEST_NODE"
)

// TestMain also makes the test binary the program that a cluster with a node starts again.
func TestMain(m *testing.M) {
	reexec.Init(map[string]func() error{embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) }})
	if dir := os.Getenv(runnerVariable); dir != "" {
		run(dir)
	}
	os.Exit(m.Run())
}

func run(dir string) {
	var options []embedded.Option
	if os.Getenv(nodeVariable) != "" {
		options = append(options, embedded.WithNodes(1, images))
	}
	cluster := embedded.New(dir, options...)
	if err := cluster.Create(context.Background()); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(cluster.Kubeconfig())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}
