package provider_test

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

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

const namespace = metav1.NamespaceDefault

// images are the ones a node has in these tests.
var images = provider.Images{Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage}

// binaries is the folder of the newest Kubernetes that was built; the test is skipped when none was.
func binaries(t *testing.T) string {
	t.Helper()
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
func create(t *testing.T, options ...provider.LocalOption) *provider.Local {
	t.Helper()
	local := provider.NewLocal(binaries(t), options...)
	start := time.Now()
	if _, err := local.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(start).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := local.Destroy(context.Background()); err != nil {
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
func eventually(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	NewWithT(t).Eventually(holds).WithTimeout(patience).WithPolling(50*time.Millisecond).Should(BeTrue(), what)
}

func TestLocalServesAndRestartsItsControllerManager(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	local := create(t, provider.WithAuditLog(audit))
	maps := clientFor(t, local.KubernetesRestConfig()).CoreV1().ConfigMaps(namespace)

	owner, err := maps.Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}
	if _, err := maps.Create(t.Context(), configMap("child", reference), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := local.StopControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "child", metav1.GetOptions{}); err != nil {
		t.Errorf("without a controller manager the dependent stays, but: %v", err)
	}
	if err := local.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the dependent is collected", func() bool {
		_, err := maps.Get(t.Context(), "child", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if err := local.Alive(); err != nil {
		t.Error(err)
	}

	logged, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"requestURI":"/api/v1/namespaces/default/configmaps/owner","verb":"delete"`; !strings.Contains(string(logged), want) {
		t.Errorf("the audit log does not hold %s", want)
	}
	exported := filepath.Join(t.TempDir(), "logs")
	if err := local.ExportLogs(t.Context(), exported); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if info, err := os.Stat(filepath.Join(exported, part+".log")); err != nil || info.Size() == 0 {
			t.Errorf("the log of %s is missing or empty: %v", part, err)
		}
	}
}

func TestLocalUsersMayDoNothingAtFirst(t *testing.T) {
	local := create(t, provider.WithoutControllers())
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
	anonymous := rest.AnonymousClientConfig(local.KubernetesRestConfig())
	_, err = clientFor(t, anonymous).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("want nobody in particular to be refused, got: %v", err)
	}
}

func TestLocalClustersSideBySide(t *testing.T) {
	clusters := []*provider.Local{provider.NewLocal(binaries(t)), provider.NewLocal(binaries(t))}
	started := make(chan error, len(clusters))
	for _, local := range clusters {
		go func() {
			_, err := local.Create(t.Context())
			started <- err
		}()
	}
	for range clusters {
		if err := <-started; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		for _, local := range clusters {
			if err := local.Destroy(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	if t.Failed() {
		return
	}
	first, second := clusters[0], clusters[1]
	if _, err := clientFor(t, first.KubernetesRestConfig()).CoreV1().ConfigMaps(namespace).
		Create(t.Context(), configMap("only-here"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, second.KubernetesRestConfig()).CoreV1().ConfigMaps(namespace).
		Get(t.Context(), "only-here", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster knows the object of the first: %v", err)
	}
	stranger := first.KubernetesRestConfig()
	stranger.Host, stranger.CAData = second.KubernetesRestConfig().Host, second.KubernetesRestConfig().CAData
	if _, err := clientFor(t, stranger).CoreV1().ConfigMaps(namespace).
		List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("want the administrator of one to be a stranger to the other, got: %v", err)
	}
	if err := first.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := provider.SweepLocal(); err != nil {
		t.Error(err)
	}
	if err := second.Alive(); err != nil {
		t.Error(err)
	}
	if err := second.WaitForControlPlane(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestLocalSaysWhichBinaryIsMissing(t *testing.T) {
	_, err := provider.NewLocal(t.TempDir()).Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no etcd in") || !strings.Contains(err.Error(), "make build") {
		t.Errorf("want the missing binary and the remedy, got: %v", err)
	}
}

func TestLocalStartThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	broken := t.TempDir()
	temporary := temporaryFolder(t)
	for _, part := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] && exit 0\necho %s has no legs >&2\nexit 3\n", part)
		if err := os.WriteFile(filepath.Join(broken, part), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, err := provider.NewLocal(broken, provider.WithoutControllers()).Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "etcd has no legs") {
		t.Errorf("want etcd's last words, got: %v", err)
	}
	t.Log(err)
	leftInFolder(t, temporary)
}

func TestLocalStartThatIsCancelledLeavesNothing(t *testing.T) {
	folder := binaries(t)
	temporary := temporaryFolder(t)
	for _, patience := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 1700 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		start := time.Now()
		local := provider.NewLocal(folder)
		_, err := local.Create(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled after %s: want its reason, got: %v", patience, err)
		}
		if late := time.Since(start) - patience; late > 2*time.Second {
			t.Errorf("cancelled after %s: returned %s later", patience, late)
		}
		leftInFolder(t, temporary)
	}
}

// temporaryFolder makes a short folder of its own the one for temporary files.
func temporaryFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "provider-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("TMPDIR", folder)
	return folder
}

// leftInFolder fails the test if anything is in the folder.
func leftInFolder(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("left behind: %s", filepath.Join(folder, entry.Name()))
	}
}

const (
	// runnerVariable makes the test binary a runner that starts a cluster, says where it is and waits to be killed.
	runnerVariable = "PROVIDER_TEST_RUNNER"
	// nodeVariable gives that cluster a node.
	nodeVariable = "PROVIDER_TEST_NODE"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(runnerVariable); folder != "" {
		run(folder)
	}
	os.Exit(m.Run())
}

func run(folder string) {
	var options []provider.LocalOption
	if os.Getenv(nodeVariable) != "" {
		options = append(options, provider.WithNode(images))
	}
	kubeconfig, err := provider.NewLocal(folder, options...).Create(context.Background())
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(kubeconfig)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}
