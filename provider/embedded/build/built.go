package build

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/version"
)

// VersionVariable is the environment variable that selects the version for make.
const VersionVariable = "KUBERNETES_VERSION"

// Find returns the directory of a version that was built into a directory, or of the newest one when the version is empty. It fails when
// that was not built.
func Find(into, version string) (string, error) {
	if version == "" {
		return newest(into)
	}
	wanted, err := parseVersion(version)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(into, tag(wanted))
	if _, err := os.Stat(filepath.Join(dir, kubernetes().name)); err != nil {
		return "", fmt.Errorf("no Kubernetes %s was built: run `runner cluster build --kubernetes-version %s`", tag(wanted), wanted)
	}
	return dir, nil
}

// Cache returns the directory in the user's cache for a runner without a clone of the repository.
func Cache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(cache, "deletion-conformance", "kubernetes"), nil
}

func newest(into string) (string, error) {
	entries, err := os.ReadDir(into)
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("look for a built Kubernetes in %s: %w", into, err)
	}
	var newest *version.Version
	for _, entry := range entries {
		found, err := parseVersion(entry.Name())
		if err != nil || newest != nil && found.LessThan(newest) {
			continue
		}
		if _, err := os.Stat(filepath.Join(into, entry.Name(), kubernetes().name)); err == nil {
			newest = found
		}
	}
	if newest == nil {
		return "", fmt.Errorf("no Kubernetes was built in %s: run `runner cluster build`, which requires Go and takes minutes, "+
			"or set --kubernetes-binaries DIR", into)
	}
	return filepath.Join(into, tag(newest)), nil
}
