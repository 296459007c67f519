package build

import (
	"fmt"
	"os"
	"path/filepath"
)

// VersionVariable is the environment variable that selects the version for make.
const VersionVariable = "KUBERNETES_VERSION"

// Find returns the directory of a version that was built into a directory. It fails when that was not built.
func Find(into, version string) (string, error) {
	wanted, err := ParseVersion(version)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(into, tag(wanted))
	if !IsBuilt(dir) {
		return "", fmt.Errorf("no Kubernetes %s was built in %s: run `runner cluster build --kubernetes-version %s`, or set --kubernetes-binaries DIR",
			tag(wanted), into, wanted)
	}
	return dir, nil
}

// IsBuilt reports whether a directory is one that Kubernetes has returned.
func IsBuilt(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, kubernetes().name))
	return err == nil
}

// Begun reports whether APIServer has built a version into a directory, and the rest is missing.
func Begun(into, version string) bool {
	_, err := os.Stat(filepath.Join(into, "v"+version, apiServerAlone().below, apiServerAlone().stamp))
	return err == nil
}

// Cache returns the directory in the user's cache for a runner without a clone of the repository.
func Cache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(cache, "deletion-conformance", "kubernetes"), nil
}
