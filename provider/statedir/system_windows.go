package statedir

import (
	"errors"
	"io/fs"
	"os"
)

// errLocked says that there is no lock to have.
var errLocked = errors.New("an embedded cluster needs Linux or macOS")

func tryLock(*os.File) error { return errLocked }

func owned(fs.FileInfo) bool { return false }
