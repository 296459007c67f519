// Package statedir keeps temporary files of a process in one directory: those of a cluster that was created for a run, or of a
// worker's kubectl commands. The process locks a file in the directory, so that a directory whose process was killed is told from
// one in use.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/filelock"
)

const (
	prefix = "deletion-conformance-"
	// lockName is the file that is locked for as long as the runner lives; the kernel unlocks it, however that ends.
	lockName = "lock"
	// longest is how many bytes the path of a directory may have so that sockets in it can be named: the path of a
	// socket may have 103 on every system.
	longest = 103 - len("/node/containerd.sock.ttrpc")
	// minAge is the age below which a directory without a lock may belong to a cluster that is only just starting.
	minAge = time.Minute
)

// Dir is the directory of one process.
type Dir struct {
	path string
	lock *os.File
}

// Kind names the directories of one purpose.
type Kind string

const (
	// Embedded is an embedded cluster.
	Embedded Kind = "embedded"
	// InKind is a kind cluster.
	InKind Kind = "kind"
	// Kubectl is a worker's kubectl commands; see Of.
	Kubectl Kind = "kubectl"
)

// Of is the kind of one run, a part of the kind.
func (k Kind) Of(run string) Kind { return k + "-" + Kind(run) }

// New makes a directory that only its owner can read.
func New(kind Kind) (*Dir, error) {
	path, err := os.MkdirTemp("", prefix+string(kind)+"-")
	if err != nil {
		return nil, fmt.Errorf("create the state directory of %s: %w", kind, err)
	}
	if kind == Embedded && len(path) > longest { // only there are sockets in it
		return nil, errors.Join(fmt.Errorf("the path of the state directory of %s, %s, is too long for sockets in it: "+
			"set TMPDIR to a directory with a shorter path", kind, path), os.Remove(path))
	}
	lock, err := newLock(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the state directory of %s, %s: %w", kind, path, err), os.RemoveAll(path))
	}
	return &Dir{path: path, lock: lock}, nil
}

// newLock makes the lock under another name first, so that nobody ever sees it unlocked while its runner lives.
func newLock(path string) (*os.File, error) {
	unnamed := filepath.Join(path, lockName+".new")
	lock, err := os.OpenFile(unnamed, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := filelock.Try(lock); err != nil { // nobody else knows it
		return nil, errors.Join(err, lock.Close())
	}
	if err := os.Rename(unnamed, filepath.Join(path, lockName)); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// Path is the directory's path, or that of something in it.
func (d *Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// Make makes a directory in the directory and returns its path.
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

// Remove removes the directory with everything in it.
func (d *Dir) Remove() error {
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	return d.lock.Close()
}

// RemoveAll removes the directories of a kind, in use or not. What cannot be removed is left to Stale.
func RemoveAll(kind Kind) {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+string(kind)+"-*")) // only a malformed pattern fails
	for _, path := range paths {
		_ = os.RemoveAll(path)
	}
}

// Stale finds the directories of this user whose runner is gone, and calls remove for each while it holds its lock. It
// returns the paths of those that are gone then.
func Stale(kind Kind, remove func(path string) error) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+string(kind)+"-*"))
	if err != nil {
		return nil, fmt.Errorf("look for stale state directories of %s: %w", kind, err)
	}
	var removed []string
	var failures []error
	for _, path := range paths {
		if !mine(path) {
			continue
		}
		stale, err := removeStale(path, remove)
		if err != nil {
			failures = append(failures, fmt.Errorf("remove the stale state directory of %s, %s: %w", kind, path, err))
		} else if stale {
			removed = append(removed, path)
		}
	}
	return removed, errors.Join(failures...)
}

// mine says that the path is a directory, itself and not by a link, of the user who asks: nobody else can make a sweep do
// anything by putting a directory of that name there.
func mine(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	return owned(info)
}

// removeStale calls remove and reports true if nobody holds the directory's lock.
func removeStale(path string, remove func(path string) error) (bool, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < minAge {
			return false, nil // gone in the meantime, or only just being made
		}
		return true, remove(path)
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }()
	if free, err := filelock.Try(lock); !free {
		return false, err // it lives
	}
	return true, remove(path)
}
