package embedded_test

import (
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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

// supported skips the test when nodes are not supported.
func supported(t *testing.T) {
	t.Helper()
	if err := embedded.NodeSupported(); err != nil {
		t.Skip(err)
	}
}

// host is the state of the host that a node must not change.
type host map[string]bool

func lookAtHost(t *testing.T) host {
	t.Helper()
	seen := host{}
	for mount := range lines(t, "/proc/self/mountinfo") {
		seen["mount "+mount] = true
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
		seen[fmt.Sprint("interface ", found.Name, addresses)] = true
	}
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward", "kernel/hostname",
	} {
		for value := range lines(t, "/proc/sys/"+name) {
			seen["kernel setting "+name+"="+value] = true
		}
	}
	for _, path := range []string{
		"/run/containerd", "/run/netns", "/run/runc", "/var/lib/containerd", "/var/lib/cni", "/var/lib/kubelet",
		"/var/log/pods", "/var/log/containers", "/opt/containerd", "/usr/libexec/kubernetes", "/etc/cni",
	} {
		if _, err := os.Stat(path); err == nil {
			seen["directory "+path] = true
		}
	}
	return seen
}

// unchanged fails the test if the host has changed.
func (before host) unchanged(t *testing.T) {
	t.Helper()
	after := lookAtHost(t)
	for found := range after {
		if !before[found] {
			t.Errorf("new on the host: %s", found)
		}
	}
	for found := range before {
		if !after[found] {
			t.Errorf("no longer on the host: %s", found)
		}
	}
}

// traces are the resources of a running cluster with a node.
type traces struct {
	dir string
	// processes are the start times by process id.
	processes map[string]string
}

// tracesOf records the processes of the cluster and their descendants, including the containers.
func tracesOf(t *testing.T, dir string) traces {
	t.Helper()
	found := traces{dir: dir, processes: map[string]string{}}
	waiting := []string{}
	for _, pid := range process.Of(dir) {
		waiting = append(waiting, fmt.Sprint(pid))
	}
	marked := len(waiting)
	for len(waiting) > 0 {
		pid := waiting[0]
		waiting = waiting[1:]
		if _, known := found.processes[pid]; known {
			continue
		}
		found.processes[pid] = startOf(pid)
		tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/children") // only a malformed pattern fails
		for _, task := range tasks {
			children, _ := os.ReadFile(task) // fails for one that has ended
			waiting = append(waiting, strings.Fields(string(children))...)
		}
	}
	if len(found.processes) <= marked || len(found.cgroups(t)) == 0 {
		t.Errorf("want containers and control groups of the node in %s, got %v, %v", dir, found.processes, found.cgroups(t))
	}
	return found
}

// startOf returns when a process started, in ticks since boot; empty for one that has ended, reaped or not.
func startOf(pid string) string {
	const state, start = 0, 19
	content, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(content), ") ") // after the name, which may contain anything
	fields := strings.Fields(rest)
	if len(fields) <= start || fields[state] == "Z" {
		return ""
	}
	return fields[start]
}

func (n traces) cgroups(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, filepath.Base(n.dir)) {
			found = append(found, path)
		}
		return nil // other programs' control groups come and go
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// gone fails the test if anything of the node is left. A killed process may take a moment to end.
func (n traces) gone(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(n.dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s is left: %v", n.dir, err)
	}
	if left := n.cgroups(t); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
	for pid, start := range n.processes {
		eventually(t, 3*time.Second, "process "+pid+" is gone", func() bool { return start == "" || startOf(pid) != start })
	}
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

// script returns a pod that runs a shell script with restricted security settings.
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
				Name: "main", Image: fixtures.BusyboxImage, Command: []string{"sh", "-c", text},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// endsWithSeven leaves a log, an exit code and a termination message.
const endsWithSeven = `trap 'echo told >/dev/termination-log; exit 7' TERM
echo running; while :; do sleep 0.1; done`

// start creates a pod when the namespace is ready for it, and waits until it runs.
func start(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	eventually(t, 20*time.Second, "the pod can be created", func() bool {
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil && !apierrors.IsForbidden(err) { // there is no ServiceAccount yet
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

func TestNode(t *testing.T) {
	supported(t)
	before := lookAtHost(t)
	local := create(t, embedded.WithNodes(1, images))
	client := clientFor(t, local.RESTConfig())
	pods := client.CoreV1().Pods(namespace)

	pod := script("polite", endsWithSeven, 30)
	pod.Finalizers = []string{"example.com/held"}
	start(t, client, pod)
	eventually(t, 10*time.Second, "the log says that it runs", func() bool {
		log, err := pods.GetLogs("polite", &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(log) == "running\n"
	})
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
	if _, err := pods.Patch(t.Context(), "polite", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the pod is gone", func() bool { return gone(t, client, "polite") })

	start(t, client, script("left-running", endsWithSeven, 30))
	if addresses := listening(t, process.Of(filepath.Dir(local.Kubeconfig()))); len(addresses) != 3 {
		t.Errorf("want the node to listen on no address of the host, beside the 3 of the control plane, got %v", addresses)
	}
	node := tracesOf(t, filepath.Dir(local.Kubeconfig()))
	if err := local.Destroy(); err != nil {
		t.Error(err)
	}
	node.gone(t)
	before.unchanged(t)
}

// on binds a pod to a node.
func on(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.NodeName = node
	return pod
}

func TestNodes_KilledRunner(t *testing.T) {
	supported(t)
	before := lookAtHost(t)
	dir := binaries(t)
	temporaryDir(t) // no other test sweeps there
	runner := exec.Command(os.Args[0])
	runner.Env = append(os.Environ(), runnerVariable+"="+dir, nodeVariable+"=yes")
	killed := startRunner(t, runner)

	local := create(t, embedded.WithNodes(1, images))
	client := clientFor(t, local.RESTConfig())
	start(t, client, script("here", endsWithSeven, 30))
	other, err := clientcmd.BuildConfigFromFlags("", filepath.Join(killed, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	start(t, clientFor(t, other), script("there", endsWithSeven, 30))

	node := tracesOf(t, killed)
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()
	swept, err := embedded.Sweep()
	if err != nil {
		t.Error(err)
	}
	if !slices.Contains(swept, killed) {
		t.Errorf("the sweep reports %v, not %s", swept, killed)
	}
	node.gone(t)
	if err := local.Alive(); err != nil {
		t.Errorf("the other cluster: %v", err)
	}
	if phase(t, client, "here") != corev1.PodRunning {
		t.Error("the pod of the other cluster does not run any more")
	}
	if err := local.Destroy(); err != nil {
		t.Error(err)
	}
	before.unchanged(t)
}

func TestCreate_NodeWithoutControllers(t *testing.T) {
	err := embedded.New(t.TempDir(), embedded.WithNodes(1, images), embedded.WithoutControllers()).Create(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a node needs the controllers") {
		t.Errorf("want to be told, got: %v", err)
	}
}

func TestCreate_NodeNotSupported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another reason comes first: not root")
	}
	t.Setenv("PATH", t.TempDir())
	err := embedded.NodeSupported()
	if err == nil {
		t.Skip("everything is where administrators' programs are, whatever PATH says")
	}
	if !strings.Contains(err.Error(), "make node-deps") || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line that says what to do, got: %v", err)
	}
}
