//go:build unix

package statedir

import (
	"io/fs"
	"os"
	"syscall"
)

// errLocked says that somebody else has a lock.
var errLocked error = syscall.EWOULDBLOCK

// tryLock takes the lock of a file, which ends with the process, or fails at once.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// owned says whether a file is this user's.
func owned(info fs.FileInfo) bool {
	status, known := info.Sys().(*syscall.Stat_t)
	return known && int(status.Uid) == os.Geteuid()
}
