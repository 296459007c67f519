//go:build !linux

package sandbox

import (
	"errors"
	"io"
	"syscall"
)

// Namespaces are known on Linux only.
func Namespaces() *syscall.SysProcAttr { return nil }

// Main says that there are no sandboxes on this operating system.
func Main(io.ReadCloser, io.WriteCloser) error { return errors.New("a sandbox needs Linux") }
