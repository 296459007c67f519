//go:build !linux

package kubectl

import "syscall"

// endWithParent does nothing here: a worker kills what it runs before it ends.
func endWithParent() *syscall.SysProcAttr { return nil }
