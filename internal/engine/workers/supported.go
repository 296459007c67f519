package workers

import (
	"errors"
	"runtime"
)

// Supported returns nil when workers can run. Windows passes only the three standard streams to a process, and kills it without a signal.
func Supported() error {
	if runtime.GOOS == "windows" {
		return errors.New("behaviors run on Linux and macOS: use WSL on Windows (list, report, merge and compare work without it)")
	}
	return nil
}
