package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// containerRuntime returns a directory for PATH with a script as the command of a container runtime.
func containerRuntime(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestKind_Failure(t *testing.T) {
	t.Parallel()
	const image = "deletion-conformance.invalid/node:v1"
	silent := containerRuntime(t, "docker", "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 1\n")
	unpulled := containerRuntime(t, "docker", `case "$1" in
ps) ;;
image) exit 1 ;;
pull) echo 'Error response from daemon: no such host' >&2; exit 1 ;;
esac
`)
	taken := containerRuntime(t, "podman", "echo mine-control-plane\n")
	for _, test := range []struct {
		name, path string
		arguments  []string
		code       int
		want       []string
	}{
		{"without a container runtime", t.TempDir(), nil, 3, []string{"no docker, podman, nerdctl is in PATH", "install Docker"}},
		{"with a daemon that does not run", silent, nil, 3, []string{"docker cannot be used", "Is the docker daemon running?", "start it"}},
		{"of an image that cannot be pulled", unpulled, []string{"--kind-image", image}, 3, []string{image, "cannot be pulled", "no such host", "--kind-image"}},
		{"of a name that is taken", taken, []string{"--cluster-name", "mine"}, 2, []string{`"mine"`, "a kind cluster with this name exists", "`podman rm --force --volumes mine-control-plane`", "--cluster-name"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ran := start(t, append(emptyEnvironment(t), "PATH="+test.path), append([]string{"--provider", "kind"}, test.arguments...)...).wait()
			g.Expect(ran.code).To(Equal(test.code))
			said := strings.Split(strings.TrimSpace(ran.errOut), "\n")
			last := said[len(said)-1]
			g.Expect(last).To(HavePrefix("runner: create the kind cluster"))
			for _, want := range test.want {
				g.Expect(last).To(ContainSubstring(want))
			}
		})
	}
}

// beingMade is a run that creates a kind cluster and has created its node, which exists as long as the file.
func beingMade(t *testing.T, created string) (ran *running, node string, environment []string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	node, begun := filepath.Join(dir, "node"), filepath.Join(dir, "begun")
	// A runtime that creates nodes, records them, and lets commands in one run until it is removed.
	environment = append(emptyEnvironment(t), "TMPDIR="+t.TempDir(), "PATH="+containerRuntime(t, "docker", fmt.Sprintf(`case "$1" in
info) [ "$3" = '{{json .}}' ] && echo '{"CgroupVersion": "2"}' ;;
ps) [ ! -e %[1]s ] || echo made-control-plane ;;
run) touch %[1]s ;;
logs) echo 'Reached target Multi-User System' ;;
container) echo '"%[3]s"' ;;
inspect) [ "$2" = --type=image ] || echo control-plane ;;
exec) touch %[2]s; while [ -e %[1]s ]; do sleep 0.1; done; exit 1 ;;
rm) rm -f %[1]s ;;
esac
`, node, begun, created))+":"+os.Getenv("PATH"))
	ran = start(t, environment, "--provider", "kind", "--cluster-name", "made")
	g.Eventually(begun).WithTimeout(waitTimeout).WithPolling(polling).Should(BeAnExistingFile())
	return ran, node, environment
}

func TestInterrupt_KindCreate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ran, node, _ := beingMade(t, time.Now().Format(time.RFC3339Nano))

	ran.signal(syscall.SIGINT)
	ended := ran.wait()

	g.Expect(ended.code).To(Equal(130))
	g.Expect(node).NotTo(BeAnExistingFile())
	g.Expect(ended.errOut).To(ContainSubstring("kind: preparing nodes"))
}

func TestCleanup_KindCluster(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		age     time.Duration
		deleted bool
	}{
		{"its own", 0, true},
		{"not one of the same name that was there before", time.Hour, false},
		{"not one of the same name that was made since", -time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ran, node, environment := beingMade(t, time.Now().Add(-test.age).Format(time.RFC3339Nano))

			alive := start(t, environment, "cleanup").wait()
			g.Expect(alive.code).To(Equal(0))
			g.Expect(node).To(BeAnExistingFile(), "its runner lives")
			ran.signal(syscall.SIGKILL)
			ran.wait()
			cleaned := start(t, environment, "cleanup").wait()

			g.Expect(cleaned.code).To(Equal(0))
			if test.deleted {
				g.Expect(cleaned.out).To(ContainSubstring("deleted the kind cluster made"))
				g.Expect(node).NotTo(BeAnExistingFile())
				return
			}
			g.Expect(cleaned.out).NotTo(ContainSubstring("made\n"))
			g.Expect(node).To(BeAnExistingFile())
			g.Expect(os.Remove(node)).To(Succeed()) // which ends the commands in it
		})
	}
}

func TestCleanup_ContainerRuntime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ran, node, environment := beingMade(t, time.Now().Format(time.RFC3339Nano))
	ran.signal(syscall.SIGKILL)
	ran.wait()
	silent, another := containerRuntime(t, "docker", "echo 'no daemon' >&2; exit 1\n"), containerRuntime(t, "podman", "exit 0\n")

	asked := start(t, append(environment, "PATH="+silent+":"+another), "cleanup").wait()
	g.Expect(asked.code).To(Equal(4))
	g.Expect(asked.errOut).To(ContainSubstring(`the kind cluster "made": docker cannot be used: docker ps: no daemon; start it`))
	g.Expect(node).To(BeAnExistingFile())

	g.Expect(start(t, environment, "cleanup").wait().out).To(ContainSubstring("deleted the kind cluster made"))
	g.Expect(node).NotTo(BeAnExistingFile())
}
