package kubectl

import "syscall"

// endWithParent has a command killed when the worker dies, however that happens.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
