package workers

import (
	"errors"
	"runtime"
)

// Supported is nil where workers can run. Windows passes only the three standard streams to a process, and ends it without warning.
func Supported() error {
	if runtime.GOOS == "windows" {
		return errors.New("behaviors run on Linux and macOS: use WSL on Windows (list, report, merge and compare work without it)")
	}
	return nil
}
