//go:build unix

package process

import "syscall"

// ownSession starts a process in a session of its own.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
