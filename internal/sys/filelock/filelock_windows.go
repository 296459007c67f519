// Package filelock locks files against other processes.
package filelock

import (
	"errors"
	"os"
)

// Try fails, because nothing that locks files runs on Windows.
func Try(*os.File) (bool, error) { return false, errors.ErrUnsupported }
