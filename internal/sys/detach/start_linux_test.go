package detach

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// parentVariable makes this test binary a program that starts another one and waits.
const parentVariable = "DETACH_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) == "" {
		os.Exit(m.Run())
	}
	command := exec.Command("sleep", "600")
	command.SysProcAttr = Attributes()
	if _, err := Start(command); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(command.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAttributes_KilledParent(t *testing.T) {
	g := NewWithT(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	stdin, err := parent.StdinPipe() // never written to: the parent waits
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = stdin.Close() }()
	stdout, err := parent.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parent.Start()).To(Succeed())
	pid, err := bufio.NewReader(stdout).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	program := func() error {
		_, err := os.Readlink("/proc/" + strings.TrimSpace(pid) + "/exe") // a zombie has none
		return err
	}
	g.Expect(program()).To(Succeed())

	g.Expect(parent.Process.Kill()).To(Succeed())
	_ = parent.Wait()

	g.Eventually(program).WithTimeout(10 * time.Second).ShouldNot(Succeed())
}

func TestStart(t *testing.T) {
	g := NewWithT(t)
	ended, err := Start(exec.Command("false"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(<-ended).To(MatchError("exit status 1"))
	_, err = Start(exec.Command("/does/not/exist"))
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
