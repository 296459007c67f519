// Package statedir keeps temporary files of a process in one directory: those of a cluster that was created for a run, or of a worker's
// kubectl commands. The process locks a file in the directory, which distinguishes a directory in use from one whose process was killed.
package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/filelock"
)

const (
	prefix = "deletion-conformance-"
	// lockName is the file that is locked while the runner lives; the kernel unlocks it when the runner ends.
	lockName = "lock"
	// longest is the maximum length of a directory's path in bytes, so that sockets in it have valid paths: the limit is 103 on every
	// system.
	longest = 103 - len("/node/containerd.sock.ttrpc")
	// minAge is the age below which a directory without a lock may belong to a cluster that is starting.
	minAge = time.Minute
	// executes is the maximum time for which a process that a killed runner had just started keeps the lock: until it executes its program.
	executes = time.Second
)

// Dir is the directory of one process.
type Dir struct {
	path string
	lock *os.File
}

// Kind is the purpose of a directory.
type Kind string

const (
	// Embedded is an embedded cluster.
	Embedded Kind = "embedded"
	// InKind is a kind cluster.
	InKind Kind = "kind"
	// Kubectl is a worker's kubectl commands; see Of.
	Kubectl Kind = "kubectl"
)

// Of is the kind of one run's directories.
func (k Kind) Of(run string) Kind { return k + "-" + Kind(run) }

// New creates a directory that only its owner can read.
func New(kind Kind) (*Dir, error) {
	path, err := os.MkdirTemp("", prefix+string(kind)+"-")
	if err != nil {
		return nil, fmt.Errorf("create the state directory of %s: %w", kind, err)
	}
	if kind == Embedded && len(path) > longest { // only these contain sockets
		return nil, errors.Join(fmt.Errorf("the path of the state directory of %s, %s, is too long for sockets in it: "+
			"set TMPDIR to a directory with a shorter path", kind, path), os.Remove(path))
	}
	lock, err := newLock(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the state directory of %s, %s: %w", kind, path, err), os.RemoveAll(path))
	}
	return &Dir{path: path, lock: lock}, nil
}

// newLock creates the lock under another name first, so that it is never visible unlocked while its runner lives.
func newLock(path string) (*os.File, error) {
	unnamed := filepath.Join(path, lockName+".new")
	lock, err := os.OpenFile(unnamed, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := filelock.Try(lock); err != nil { // no other process knows it
		return nil, errors.Join(err, lock.Close())
	}
	if err := os.Rename(unnamed, filepath.Join(path, lockName)); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// Path is the directory's path, or the path of a file in it.
func (d *Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// Make creates a directory in the directory and returns its path.
func (d *Dir) Make(elements ...string) (string, error) {
	path := d.Path(elements...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", path, err)
	}
	return path, nil
}

// Write writes a file in the directory and returns its path.
func (d *Dir) Write(name string, content []byte) (string, error) {
	path := d.Path(name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}

// Remove removes the directory and its content.
func (d *Dir) Remove() error {
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	return d.lock.Close()
}

// RemoveAll removes the directories of a kind, even if they are in use. Stale handles what cannot be removed.
func RemoveAll(kind Kind) {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+string(kind)+"-*")) // only a malformed pattern fails
	for _, path := range paths {
		_ = os.RemoveAll(path)
	}
}

// Stale finds the directories of this user whose runner is gone, and calls remove for each while it holds the lock. It returns the paths of
// the removed ones.
func Stale(kind Kind, remove func(path string) error) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+string(kind)+"-*"))
	if err != nil {
		return nil, fmt.Errorf("look for stale state directories of %s: %w", kind, err)
	}
	var removed []string
	var failures []error
	started, cancel := context.WithTimeout(context.Background(), executes) // for all of them
	defer cancel()
	for _, path := range paths {
		if !mine(path) {
			continue
		}
		stale, err := removeStale(started, path, remove)
		if err != nil {
			failures = append(failures, fmt.Errorf("remove the stale state directory of %s, %s: %w", kind, path, err))
		} else if stale {
			removed = append(removed, path)
		}
	}
	return removed, errors.Join(failures...)
}

// mine reports whether the path is a directory of this user and not a link, so that other users cannot misuse a sweep.
func mine(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	return owned(info)
}

// removeStale calls remove and reports true if no process holds the directory's lock when the context ends.
func removeStale(ctx context.Context, path string, remove func(path string) error) (bool, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < minAge {
			return false, nil // gone meanwhile, or being created
		}
		return true, remove(path)
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }()
	err = wait.PollUntilContextCancel(ctx, executes/50, true, func(context.Context) (bool, error) {
		return filelock.Try(lock)
	})
	if wait.Interrupted(err) {
		return false, nil // in use
	}
	if err != nil {
		return false, err
	}
	return true, remove(path)
}
