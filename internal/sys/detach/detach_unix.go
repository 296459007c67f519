//go:build unix

// Package detach starts processes in their own sessions, so that Ctrl-C in a terminal does not reach them, and processes that end with this
// one.
package detach

import (
	"os"
	"syscall"
)

// Attributes start a process in its own session.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Kill kills a process that was started with Attributes, and its children.
func Kill(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGKILL) }
