package kubebuild

import (
	"fmt"
	"os"
	"path/filepath"
)

// Newest is the folder of the newest version that was built into a folder. It fails when there is none.
func Newest(into string) (string, error) {
	entries, err := os.ReadDir(into)
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("look for a built Kubernetes in %s: %w", into, err)
	}
	newest := Version{}
	for _, entry := range entries {
		version, err := ParseVersion(entry.Name())
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(into, entry.Name(), binaryName)); err == nil && version.compare(newest) > 0 {
			newest = version
		}
	}
	if newest == (Version{}) {
		return "", fmt.Errorf("no Kubernetes was built in %s: build one with `make build`", into)
	}
	return filepath.Join(into, newest.Tag()), nil
}
