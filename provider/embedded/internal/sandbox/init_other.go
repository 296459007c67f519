//go:build !linux

package sandbox

import (
	"errors"
	"io"
	"syscall"
)

// Namespaces are supported only on Linux.
func Namespaces() *syscall.SysProcAttr { return nil }

// Main fails, because this operating system has no sandboxes.
func Main(io.ReadCloser, io.WriteCloser) error { return errors.New("a sandbox needs Linux") }

// Connect fails, because this operating system has no sandboxes.
func Connect(string, End, End) error { return errors.New("a sandbox needs Linux") }
