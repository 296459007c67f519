package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/deletion-conformance/deletion-conformance/provider/internal/containers"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/statedir"
)

// kindNote is the file of a state directory that holds the name of the cluster, from before it is made.
const kindNote = "cluster"

// clockSkew is how far the clock of a virtual machine in which containers run may be off.
const clockSkew = time.Minute

// kindBegun is how long after the note was written all nodes' containers are there, however slow the machine: kind makes them first, all at
// the same time, and their images were pulled before. A cluster of the same name that is younger is somebody else's.
const kindBegun = 5 * time.Minute

// note notes which cluster is about to be made, unless it is to be kept in any case.
func (c *kindCluster) note(kept bool) error {
	if kept {
		return nil
	}
	_, err := c.dir.Write(kindNote, []byte(c.config.Name))
	return err
}

// SweepKind deletes the kind clusters that runners of this user made which were killed before they could delete them, and returns their
// names. Clusters that were to be kept are left, and so is one that somebody made under the same name in the meantime.
func SweepKind(ctx context.Context) ([]string, error) {
	var names []string
	_, err := statedir.Stale(statedir.InKind, func(path string) error {
		name, err := sweepKind(ctx, path)
		if name != "" {
			names = append(names, name)
		}
		return errors.Join(err, ctx.Err())
	})
	return names, err
}

// sweepKind deletes the cluster that a state directory is about, where it is still there, and the directory, and returns the name of what
// it deleted. The directory stays where that fails, as it names what is left.
func sweepKind(ctx context.Context, path string) (string, error) {
	content, err := os.ReadFile(filepath.Join(path, kindNote))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", os.RemoveAll(path) // nothing was made, or it was to be kept
	case err != nil:
		return "", err
	}
	name := string(content)
	deleted, err := deleteKind(ctx, name, path)
	if err != nil {
		return "", fmt.Errorf("delete the kind cluster %q: %w", name, err)
	}
	if !deleted {
		name = ""
	}
	return name, os.RemoveAll(path)
}

// deleteKind deletes a cluster if it is the one that was made when the note in the state directory was written. It says whether it did.
func deleteKind(ctx context.Context, name, path string) (bool, error) {
	noted, err := os.Stat(filepath.Join(path, kindNote))
	if err != nil {
		return false, err
	}
	runtime, err := containers.Find(ctx)
	if err != nil {
		return false, err
	}
	kind := cluster.NewProvider(runtime.ForKind, cluster.ProviderWithLogger(progressLines{io.Discard}))
	nodes, err := kind.ListNodes(name)
	if err != nil || len(nodes) == 0 {
		return false, said(err)
	}
	for _, node := range nodes {
		created, err := runtime.Created(ctx, node.String())
		if err != nil {
			return false, err
		}
		if created.Before(noted.ModTime().Add(-clockSkew)) || created.After(noted.ModTime().Add(kindBegun)) {
			return false, nil
		}
	}
	return true, said(kind.Delete(name, filepath.Join(path, "kubeconfig")))
}
