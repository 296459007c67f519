package workers

import (
	"errors"
	"os"
	"syscall"
)

// Supported is nil where workers can run; otherwise it says in one line what to do. Windows hands no pipe to a process it
// starts but the three that every process has, and ends it without a warning.
func Supported() error {
	return errors.New("behaviours are judged on Linux and macOS: on Windows run this in WSL (list, report, merge and compare work here, too)")
}

func ownSession() *syscall.SysProcAttr { return nil }

func killSession(process *os.Process) error { return process.Kill() }
