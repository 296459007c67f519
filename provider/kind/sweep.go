package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/deletion-conformance/deletion-conformance/provider/kind/internal/containers"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
)

// noteFile is the file in a state directory that names its cluster. It is written before the cluster is created.
const noteFile = "cluster"

// noted is the content of a note.
type noted struct {
	// Name is the name of the cluster.
	Name string
	// Runtime is the container runtime of its nodes; others do not know them.
	Runtime string
	// at is when the note was written.
	at time.Time
}

// clockSkew is the tolerance for the clock of a virtual machine in which containers run.
const clockSkew = time.Minute

// begun is the time after the note within which all nodes' containers exist even on a slow machine: kind creates them first, in parallel,
// and after their images were pulled. A younger cluster of the same name was created by someone else.
const begun = 5 * time.Minute

// note records which cluster is about to be created, unless it is always kept.
func (c *instance) note(kept bool) error {
	if kept {
		return nil
	}
	content, err := json.Marshal(noted{Name: c.config.Name, Runtime: c.runtime.Name})
	if err != nil {
		return err
	}
	_, err = c.dir.Write(noteFile, content)
	return err
}

// readNote reads the note of a state directory; nil when there is none, or when the runner was killed while it wrote it.
func readNote(path string) (*noted, error) {
	file := filepath.Join(path, noteFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	note := &noted{at: info.ModTime()}
	if json.Unmarshal(content, note) != nil || note.Name == "" {
		note = nil
	}
	return note, nil
}

// Sweep deletes the kind clusters that killed runners of this user could not delete, and returns their names. It keeps clusters that were
// to be kept, and clusters that someone else has created under the same name since.
func Sweep(ctx context.Context) ([]string, error) {
	var names []string
	_, err := statedir.Stale(statedir.InKind, func(path string) error {
		name, err := sweepOne(ctx, path)
		if name != "" {
			names = append(names, name)
		}
		return errors.Join(err, ctx.Err())
	})
	return names, err
}

// sweepOne deletes the cluster of a state directory, if it exists, and the directory, and returns the name of what it deleted. It keeps the
// directory after an error, because it names what is left.
func sweepOne(ctx context.Context, path string) (string, error) {
	note, err := readNote(path)
	switch {
	case err != nil:
		return "", err
	case note == nil:
		return "", os.RemoveAll(path) // nothing was created, or it was to be kept
	}
	name := note.Name
	deleted, err := deleteNoted(ctx, *note, filepath.Join(path, "kubeconfig"))
	if err != nil {
		return "", fmt.Errorf("delete the kind cluster %q: %w", name, err)
	}
	if !deleted {
		name = ""
	}
	return name, os.RemoveAll(path)
}

// deleteNoted deletes a cluster if it is the one of the note, and reports whether it did.
func deleteNoted(ctx context.Context, note noted, kubeconfig string) (bool, error) {
	runtime, err := containers.Named(ctx, note.Runtime)
	if err != nil {
		return false, err
	}
	kind := cluster.NewProvider(runtime.ForKind, cluster.ProviderWithLogger(progressLines{io.Discard}))
	nodes, err := kind.ListNodes(note.Name)
	if err != nil || len(nodes) == 0 {
		return false, reasonOf(err)
	}
	for _, node := range nodes {
		created, err := runtime.Created(ctx, node.String())
		if err != nil {
			return false, err
		}
		if created.Before(note.at.Add(-clockSkew)) || created.After(note.at.Add(begun)) {
			return false, nil
		}
	}
	return true, reasonOf(kind.Delete(note.Name, kubeconfig))
}
