package provider_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/deletion-conformance/deletion-conformance/framework/provider"
)

var images = provider.Images{Busybox: provider.BusyboxImage, Pause: provider.PauseImage}

// supported skips the test where there can be no node.
func supported(t *testing.T) {
	t.Helper()
	if err := provider.NodeSupported(); err != nil {
		t.Skip(err)
	}
}

// host is what a node could leave on the host.
type host struct {
	mounts, interfaces, settings, folders map[string]bool
	namespaces                            map[string]bool // those that any process is in
	cgroups                               map[string]bool
}

func lookAtHost(t *testing.T) host {
	t.Helper()
	seen := host{
		mounts: lines(t, "/proc/self/mountinfo"), interfaces: map[string]bool{}, settings: map[string]bool{},
		folders: map[string]bool{}, namespaces: map[string]bool{}, cgroups: map[string]bool{},
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range interfaces {
		addresses, err := found.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		seen.interfaces[fmt.Sprint(found.Name, addresses)] = true
	}
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward", "kernel/hostname",
	} {
		for value := range lines(t, "/proc/sys/"+name) {
			seen.settings[name+"="+value] = true
		}
	}
	for _, path := range []string{
		"/run/containerd", "/run/netns", "/run/runc", "/var/lib/containerd", "/var/lib/cni", "/var/lib/kubelet",
		"/var/log/pods", "/var/log/containers", "/opt/containerd", "/usr/libexec/kubernetes", "/etc/cni",
	} {
		if _, err := os.Stat(path); err == nil {
			seen.folders[path] = true
		}
	}
	for _, kind := range []string{"pid", "mnt", "net"} {
		links, err := filepath.Glob("/proc/[0-9]*/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil {
				seen.namespaces[target] = true
			}
		}
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, "deletion-conformance") {
			seen.cgroups[path] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// unchanged fails the test if the host is otherwise than before. What was killed may take a moment to be reaped.
func (before host) unchanged(t *testing.T) {
	t.Helper()
	differences := before.differences(lookAtHost(t))
	for deadline := time.Now().Add(3 * time.Second); len(differences) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		differences = before.differences(lookAtHost(t))
	}
	for _, difference := range differences {
		t.Error(difference)
	}
}

func (before host) differences(after host) []string {
	var differences []string
	for what, pair := range map[string][2]map[string]bool{
		"mounts": {before.mounts, after.mounts}, "interfaces": {before.interfaces, after.interfaces},
		"kernel settings": {before.settings, after.settings}, "folders": {before.folders, after.folders},
		"namespaces": {before.namespaces, after.namespaces}, "control groups": {before.cgroups, after.cgroups},
	} {
		for found := range pair[1] {
			if !pair[0][found] {
				differences = append(differences, what+": new on the host: "+found)
			}
		}
		for found := range pair[0] {
			if !pair[1][found] && what != "namespaces" { // others' may end
				differences = append(differences, what+": no longer on the host: "+found)
			}
		}
	}
	return differences
}

func lines(t *testing.T, path string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		found[strings.TrimSpace(line)] = true
	}
	return found
}

// script is a pod that runs a shell script as pods do where little is allowed.
func script(name, text string, grace int64) *corev1.Pod {
	user, yes, no := int64(65532), true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: provider.BusyboxImage, Command: []string{"sh", "-c", text},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// endsWithSeven says so, and is heard of through its log, its exit code and its termination message.
const endsWithSeven = `trap 'echo ending; echo told >/dev/termination-log; exit 7' TERM
echo running; while :; do sleep 0.1; done`

// start creates a pod once the namespace is ready for it, and waits until it runs.
func start(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	eventually(t, 20*time.Second, "the pod can be created", func() bool {
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil && !apierrors.IsForbidden(err) { // there is no service account yet
			t.Fatal(err)
		}
		return err == nil
	})
	eventually(t, 30*time.Second, "the pod runs", func() bool { return phase(t, client, pod.Name) == corev1.PodRunning })
}

func phase(t *testing.T, client kubernetes.Interface, name string) corev1.PodPhase {
	t.Helper()
	pod, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Status.Phase
}

func gone(t *testing.T, client kubernetes.Interface, name string) bool {
	t.Helper()
	_, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

func TestNodeRunsAPodToItsEndAndLeavesNothing(t *testing.T) {
	supported(t)
	before := lookAtHost(t)
	local := create(t, provider.WithNode(images))
	client := clientFor(t, local.KubernetesRestConfig())
	pods := client.CoreV1().Pods(namespace)

	pod := script("polite", endsWithSeven, 30)
	pod.Finalizers = []string{"example.com/held"}
	start(t, client, pod)
	read := func(want string) {
		eventually(t, 10*time.Second, "the log has "+want, func() bool {
			log, err := pods.GetLogs("polite", &corev1.PodLogOptions{}).DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(log), want)
		})
	}
	read("running")
	if err := pods.Delete(t.Context(), "polite", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the pod has failed", func() bool { return phase(t, client, "polite") == corev1.PodFailed })
	found, err := pods.Get(t.Context(), "polite", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := found.Status.ContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 7 || ended.Message != "told\n" {
		t.Errorf("want exit code 7 and the message told, got %+v", ended)
	}
	read("ending")
	if _, err := pods.Patch(t.Context(), "polite", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the pod is gone", func() bool { return gone(t, client, "polite") })

	start(t, client, script("left-running", endsWithSeven, 30))
	folder := filepath.Dir(local.GetKubeconfig())
	if err := local.Destroy(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder %s is left: %v", folder, err)
	}
	before.unchanged(t)
}

func TestNodeThatIsStoppedKeepsItsPods(t *testing.T) {
	supported(t)
	local := create(t, provider.WithNode(images))
	client := clientFor(t, local.KubernetesRestConfig())
	start(t, client, script("cut-off", endsWithSeven, 1))
	if err := local.StopNode(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if nodes, err := local.ListNode(t.Context()); err != nil || len(nodes) != 1 || nodes[0].State != "stopped" {
		t.Errorf("want one stopped node, got %v, %v", nodes, err)
	}
	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), "cut-off", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // the grace and more: there is nobody who could be asked
	if gone(t, client, "cut-off") {
		t.Error("the pod is gone, and nobody can have ended it")
	}
	if err := local.StartNode(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the pod is gone", func() bool { return gone(t, client, "cut-off") })
	if err := local.Alive(); err != nil {
		t.Error(err)
	}
}

func TestNodesSideBySideAndAfterAKilledRunner(t *testing.T) {
	supported(t)
	before := lookAtHost(t)
	folder := binaries(t)
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), runnerVariable+"="+folder, nodeVariable+"=yes")
	killed := startRunner(t, runner)

	local := create(t, provider.WithNode(images))
	client := clientFor(t, local.KubernetesRestConfig())
	start(t, client, script("here", endsWithSeven, 30))
	other := provider.NewExisting(filepath.Join(killed, "admin.kubeconfig"), "")
	if _, err := other.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, clientFor(t, other.KubernetesRestConfig()), script("there", endsWithSeven, 30))

	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()
	swept, err := provider.SweepLocal()
	if err != nil {
		t.Error(err)
	}
	if !slices.Contains(swept, killed) {
		t.Errorf("the sweep reports %v, not %s", swept, killed)
	}
	if err := local.Alive(); err != nil {
		t.Errorf("the other cluster: %v", err)
	}
	if phase(t, client, "here") != corev1.PodRunning {
		t.Error("the pod of the other cluster does not run any more")
	}
	if err := local.Destroy(context.Background()); err != nil {
		t.Error(err)
	}
	before.unchanged(t)
}

func TestNodeNeedsControllers(t *testing.T) {
	_, err := provider.NewLocal(t.TempDir(), provider.WithNode(images), provider.WithoutControllers()).Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a node needs the controllers") {
		t.Errorf("want to be told, got: %v", err)
	}
}

func TestNodeNotSupportedSaysWhatToInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another reason comes first: not root")
	}
	t.Setenv("PATH", t.TempDir())
	err := provider.NodeSupported()
	if err == nil {
		t.Skip("everything is where administrators' programs are, whatever PATH says")
	}
	if !strings.Contains(err.Error(), "make node-deps") || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line that says what to do, got: %v", err)
	}
}
