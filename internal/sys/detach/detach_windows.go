// Package detach starts processes in their own sessions, so that Ctrl-C in a terminal does not reach them, and processes that end with this
// one.
package detach

import (
	"os"
	"syscall"
)

// Attributes are nil, because Windows has no such sessions.
func Attributes() *syscall.SysProcAttr { return nil }

// Kill kills a process.
func Kill(process *os.Process) error { return process.Kill() }
