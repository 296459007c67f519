//go:build unix

package workers

import (
	"os"
	"syscall"
)

// Supported is nil where workers can run; otherwise it says in one line what to do.
func Supported() error { return nil }

// ownSession starts a process in a session of its own.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killSession kills a process that has a session of its own, and what it has started.
func killSession(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGKILL) }
