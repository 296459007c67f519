package detach

import "syscall"

// killedWithParent adds to attributes that the kernel kills the process when the thread that started it ends.
func killedWithParent(attributes *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attributes == nil {
		attributes = &syscall.SysProcAttr{}
	}
	attributes.Pdeathsig = syscall.SIGKILL
	return attributes
}
