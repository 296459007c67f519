//go:build unix

package statedir

import (
	"io/fs"
	"os"
	"syscall"
)

// owned says whether a file is this user's.
func owned(info fs.FileInfo) bool {
	status, known := info.Sys().(*syscall.Stat_t)
	return known && int(status.Uid) == os.Geteuid()
}
