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

// noteFile is the file of a state directory that says which cluster it is about, from before that is made.
const noteFile = "cluster"

// noted is what a note says.
type noted struct {
	// Name is the cluster's.
	Name string
	// Runtime is that of its nodes: another one that answers knows nothing of them.
	Runtime string
	// at is when the note was written.
	at time.Time
}

// clockSkew is how far the clock of a virtual machine in which containers run may be off.
const clockSkew = time.Minute

// begun is how long after the note was written all nodes' containers are there, however slow the machine: kind
// makes them first, all at the same time, and their images were pulled before. A cluster of the same name that is
// younger is somebody else's.
const begun = 5 * time.Minute

// note notes which cluster is about to be made, unless it is to be kept in any case.
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

// readNote reads the note of a state directory; nil where there is none, or where the runner was killed while it wrote it.
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

// Sweep deletes the kind clusters that runners of this user made which were killed before they could delete them,
// and returns their names. Clusters that were to be kept are left, and so is one that somebody made under the same name
// in the meantime.
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

// sweepOne deletes the cluster that a state directory is about, where it is still there, and the directory, and
// returns the name of what it deleted. The directory stays where that fails, as it names what is left.
func sweepOne(ctx context.Context, path string) (string, error) {
	note, err := readNote(path)
	switch {
	case err != nil:
		return "", err
	case note == nil:
		return "", os.RemoveAll(path) // nothing was made, or it was to be kept
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

// deleteNoted deletes a cluster if it is the one that was made when the note was written. It says whether it did.
func deleteNoted(ctx context.Context, note noted, kubeconfig string) (bool, error) {
	runtime, err := containers.Named(ctx, note.Runtime)
	if err != nil {
		return false, err
	}
	kind := cluster.NewProvider(runtime.ForKind, cluster.ProviderWithLogger(progressLines{io.Discard}))
	nodes, err := kind.ListNodes(note.Name)
	if err != nil || len(nodes) == 0 {
		return false, said(err)
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
	return true, said(kind.Delete(note.Name, kubeconfig))
}
