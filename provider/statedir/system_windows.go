package statedir

import "io/fs"

func owned(fs.FileInfo) bool { return false }
