//go:build !linux

package detach

import "syscall"

// killedWithParent does nothing: only Linux offers this.
func killedWithParent(attributes *syscall.SysProcAttr) *syscall.SysProcAttr { return attributes }
