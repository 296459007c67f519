//go:build unix

// Package detach starts processes in sessions of their own, so that Ctrl-C in a terminal does not reach them.
package detach

import (
	"os"
	"syscall"
)

// Attributes start a process in a session of its own.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Kill kills a process that was started with Attributes, and the processes that it started.
func Kill(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGKILL) }
