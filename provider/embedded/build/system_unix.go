//go:build unix

package build

import (
	"os/exec"
	"syscall"
)

// supported returns nil when Kubernetes can be built and run.
func supported() error { return nil }

// inOwnGroup runs a command in its own process group, which is interrupted when the command's context ends.
func inOwnGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
}
