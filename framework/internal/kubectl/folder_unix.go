//go:build unix

package kubectl

import (
	"errors"
	"os"
	"syscall"
)

// lockFolder locks a folder. It fails when somebody else has.
func lockFolder(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// mine says that the path is a directory, itself and not by a link, of the user who asks.
func mine(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	status, known := info.Sys().(*syscall.Stat_t)
	return known && int(status.Uid) == os.Geteuid()
}
