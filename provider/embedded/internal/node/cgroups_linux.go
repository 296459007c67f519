package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	cgroupsv1 "github.com/opencontainers/cgroups/fs"
	cgroupsv2 "github.com/opencontainers/cgroups/fs2"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// cgroupRoot is the mount point of control groups.
const cgroupRoot = "/sys/fs/cgroup"

// cgroupsOf manages the control groups of a name at the root of every hierarchy: one in version 2, one for each controller in version 1.
func cgroupsOf(name string) (cgroups.Manager, error) {
	config := &cgroups.Cgroup{Path: "/" + name, Resources: &cgroups.Resources{}}
	if cgroups.IsCgroup2UnifiedMode() {
		return cgroupsv2.NewManager(config, filepath.Join(cgroupRoot, name))
	}
	return cgroupsv1.NewManager(config, nil)
}

// cgroupsSupported returns nil when control groups for a node can be created.
func cgroupsSupported() error {
	// The name is unique, because the nodes of a cluster start at the same time.
	name := "deletion-conformance-probe-" + string(uuid.NewUUID())
	if err := errors.Join(makeCgroups(name), removeCgroups(name)); err != nil {
		return fmt.Errorf("a real node requires its own control groups, which this machine does not permit: %w", err)
	}
	return nil
}

// makeCgroups creates the control groups, and enables the controllers that a kubelet needs (version 2). These remain enabled, which does
// not affect groups without settings.
func makeCgroups(name string) error {
	manager, err := cgroupsOf(name)
	if err != nil {
		return fmt.Errorf("create control groups: %w", err)
	}
	const noProcess = -1
	if err := manager.Apply(noProcess); err != nil {
		return fmt.Errorf("create control groups: %w", err)
	}
	return nil
}

// removeCgroups removes the control groups and everything below them. Their processes must be ending.
func removeCgroups(name string) error {
	if _, err := os.Stat(cgroupRoot); errors.Is(err, fs.ErrNotExist) {
		return nil // without control groups a node has none
	}
	manager, err := cgroupsOf(name)
	if err != nil {
		return fmt.Errorf("remove control groups: %w", err)
	}
	if err := manager.Destroy(); err != nil {
		return fmt.Errorf("remove control groups: %w", err)
	}
	return nil
}
