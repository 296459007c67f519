// Package detach starts processes in sessions of their own, so that Ctrl-C in a terminal does not reach them.
package detach

import (
	"os"
	"syscall"
)

// Attributes are none: Windows has no sessions of this kind.
func Attributes() *syscall.SysProcAttr { return nil }

// Kill kills a process.
func Kill(process *os.Process) error { return process.Kill() }
