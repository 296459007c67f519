//go:build unix

// Package filelock locks files against other processes.
package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Try locks a file until it is closed or the process ends. It is false where another process holds the lock.
func Try(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
