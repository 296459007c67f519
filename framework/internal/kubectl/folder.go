package kubectl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// folder is where the commands of a worker have their files. The worker holds a lock on it, which the kernel takes off however
// the worker ends: so a folder that was left is told from one in use, also where no cluster is there to be asked.
type folder struct {
	path string
	lock *os.File
}

// unlocked ends the name of a folder until its worker has locked it: nobody sees it under its own name before.
const unlocked = ".new"

// folderPrefix begins the names of the folders of a run.
func folderPrefix(run string) string { return "deletion-conformance-" + run + "-" }

func makeFolder(run string) (*folder, error) {
	made, err := os.MkdirTemp("", folderPrefix(run)+"*"+unlocked)
	if err != nil {
		return nil, fmt.Errorf("make a folder for kubectl: %w", err)
	}
	path := strings.TrimSuffix(made, unlocked)
	lock, err := lockFolder(made)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the folder for kubectl: %w", err), os.RemoveAll(made))
	}
	return &folder{path: path, lock: lock}, nil
}

// remove removes the folder. Nobody is left to be told when that fails.
func (f *folder) remove() {
	_ = os.RemoveAll(f.path)
	_ = f.lock.Close()
}

// RemoveFolders removes what workers of a run left that were killed before they could.
func RemoveFolders(run string) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix(run)+"*")) // only a malformed pattern fails
	for _, folder := range left {
		_ = os.RemoveAll(folder)
	}
}

// SweepFolders removes what workers of any run of this user left that were killed before they could, where the runner was, too.
// It returns the paths.
func SweepFolders() ([]string, error) {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix("dc*")+"*")) // only a malformed pattern fails
	var removed []string
	var failures []error
	for _, path := range found {
		if strings.HasSuffix(path, unlocked) || !mine(path) {
			continue
		}
		lock, err := lockFolder(path)
		if err != nil {
			continue // it is in use, or has gone
		}
		if err := errors.Join(os.RemoveAll(path), lock.Close()); err != nil {
			failures = append(failures, fmt.Errorf("remove the temporary files of a killed run: %w", err))
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(failures...)
}
