//go:build unix

package build

import (
	"os/exec"
	"syscall"
)

// supported is nil where Kubernetes can be built and run.
func supported() error { return nil }

// inOwnGroup makes a command run in a process group of its own, which is interrupted when the command's context ends.
func inOwnGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
}
