package embedded_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

func TestCluster_SideBySide(t *testing.T) {
	dir := binaries(t)
	clusters := []*embedded.Cluster{embedded.New(dir), embedded.New(dir)}
	started := make(chan error, len(clusters))
	for _, local := range clusters {
		go func() {
			err := local.Create(t.Context())
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
			if err := local.Destroy(); err != nil {
				t.Error(err)
			}
		}
	})
	if t.Failed() {
		return
	}
	first, second := clusters[0], clusters[1]
	mayDoNothingAtFirst(t, first)
	if _, err := clientFor(t, first.RESTConfig()).CoreV1().ConfigMaps(namespace).
		Create(t.Context(), configMap("only-here"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, second.RESTConfig()).CoreV1().ConfigMaps(namespace).
		Get(t.Context(), "only-here", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster knows the object of the first: %v", err)
	}
	stranger := first.RESTConfig()
	stranger.Host, stranger.CAData = second.RESTConfig().Host, second.RESTConfig().CAData
	if _, err := clientFor(t, stranger).CoreV1().ConfigMaps(namespace).
		List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("want the administrator of one to be a stranger to the other, got: %v", err)
	}
	if err := first.Destroy(); err != nil {
		t.Error(err)
	}
	if _, err := embedded.Sweep(); err != nil {
		t.Error(err)
	}
	if err := second.Alive(); err != nil {
		t.Error(err)
	}
	leavesNothing(t, second)
}

// leavesNothing shows that a cluster listens on loopback only, and destroys it.
func leavesNothing(t *testing.T, local *embedded.Cluster) {
	t.Helper()
	dir := filepath.Dir(local.Kubeconfig())
	components := process.Of(dir)
	if len(components) != 4 {
		t.Errorf("want 4 processes, got %v", components)
	}
	addresses := listening(t, components)
	if len(addresses) != 3 {
		t.Errorf("want 3 addresses that are listened on, as etcd has none, got %v", addresses)
	}
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("listens on %s, which is not loopback", address)
		}
	}

	start := time.Now()
	if err := local.Destroy(); err != nil {
		t.Fatal(err)
	}
	t.Logf("destroyed in %s", time.Since(start).Round(time.Millisecond))
	if left := process.Of(dir); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	for _, address := range addresses {
		if connection, err := net.Dial("tcp", address); err == nil {
			_ = connection.Close()
			t.Errorf("somebody still listens on %s", address)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s is left: %v", dir, err)
	}
	if err := local.Destroy(); err != nil {
		t.Errorf("destroying it again is not harmless: %v", err)
	}
}

func TestCluster_KilledRunner(t *testing.T) {
	runner := exec.Command(os.Args[0])
	temporaryDir(t) // no other test sweeps there
	runner.Env = append(os.Environ(), runnerVariable+"="+binaries(t))
	dir := startRunner(t, runner)
	if len(process.Of(dir)) != 4 {
		t.Fatalf("want 4 processes, got %v", process.Of(dir))
	}

	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()
	start := time.Now()
	eventually(t, 10*time.Second, "the processes end by themselves", func() bool { return len(process.Of(dir)) == 0 })
	t.Logf("gone %s after the runner", time.Since(start).Round(time.Millisecond))

	swept, err := embedded.Sweep()
	if err != nil {
		t.Error(err)
	}
	if !slices.Contains(swept, dir) {
		t.Errorf("the sweep reports %v, not %s", swept, dir)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s is left: %v", dir, err)
	}
}

// startRunner starts this test binary as a runner with a cluster, and returns the cluster's state directory.
func startRunner(t *testing.T, runner *exec.Cmd) string {
	t.Helper()
	stdin, err := runner.StdinPipe() // never written to: the runner waits
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error:") {
		t.Fatalf("the runner started no cluster: %v %s", err, line)
	}
	return filepath.Dir(strings.TrimSpace(line))
}

// listening returns the TCP addresses on which the processes listen.
func listening(t *testing.T, pids []int) []string {
	t.Helper()
	sockets := map[string]bool{}
	for _, pid := range pids {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
				sockets[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
			}
		}
	}
	var addresses []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			const local, state, inode, listen = 1, 3, 9, "0A"
			fields := strings.Fields(string(line))
			if len(fields) > inode && fields[state] == listen && sockets[fields[inode]] {
				addresses = append(addresses, address(t, fields[local]))
			}
		}
	}
	return addresses
}

// address parses an address of /proc/net/tcp: 32-bit words in the machine's (little-endian) order.
func address(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	ip, hostErr := hex.DecodeString(host)
	number, portErr := hex.DecodeString(port)
	if hostErr != nil || portErr != nil {
		t.Fatalf("cannot read the address %s", text)
	}
	for word := 0; word < len(ip); word += 4 {
		slices.Reverse(ip[word : word+4])
	}
	return net.JoinHostPort(net.IP(ip).String(), fmt.Sprint(int(number[0])<<8|int(number[1])))
}

// A controller manager that is just starting ends when the API server does.
func TestCluster_ControllerManagerEndsWithoutAPIServer(t *testing.T) {
	g, local := NewWithT(t), create(t)
	components := local.Features().Components
	g.Expect(component.Stop(t.Context(), components, component.APIServer)).To(Succeed())
	if first := pidOf(t, local, "kube-controller-manager"); first > 0 { // otherwise it has ended by itself
		g.Expect(syscall.Kill(first, syscall.SIGKILL)).To(Succeed())
	}
	g.Eventually(func() int { return pidOf(t, local, "kube-controller-manager") }).WithTimeout(10 * time.Second).Should(BeZero())
	g.Expect(local.Alive()).To(Succeed(), "it may end without an API server")

	g.Expect(component.Start(t.Context(), components, component.APIServer)).To(Succeed())
	second := pidOf(t, local, "kube-controller-manager")
	g.Expect(second).To(BeNumerically(">", 0), "it was started again")
	g.Expect(syscall.Kill(second, syscall.SIGKILL)).To(Succeed())
	g.Eventually(local.Alive).WithTimeout(10 * time.Second).Should(MatchError(ContainSubstring("kube-controller-manager ended")))
}

// pidOf returns the process id of a component of a cluster, and 0 if it does not run.
func pidOf(t *testing.T, local *embedded.Cluster, component string) int {
	t.Helper()
	for _, pid := range process.Of(filepath.Dir(local.Kubeconfig())) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // fails for one that has ended
		if binary, _, _ := strings.Cut(string(command), "\x00"); filepath.Base(binary) == component {
			return pid
		}
	}
	return 0
}
